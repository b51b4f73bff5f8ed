// Package fault is the one table of everything that can go wrong in Skua: the
// kinds of error, their stable ids and how each is told on the wire.
//
// It is not for wrapping every error on its way up: an error is given a kind
// where it is understood, and later layers only add the table or file it
// concerns. All values are immutable and safe for concurrent use.
package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
)

// Kind classifies an error. It is itself an error, so that
// errors.Is(err, fault.NotFound) asks for the kind.
type Kind uint8

// The kinds, each with its meaning for the caller.
const (
	Internal        Kind = iota // a fault of ours
	NotFound                    // a catalog, table, column or file that does not exist
	Invalid                     // the statement, parameter or configuration is wrong
	Unauthenticated             // the caller is not known
	Denied                      // the caller is known and may not
	Unsupported                 // a correct request that Skua does not serve
	Corrupt                     // a file contradicts its format or the table's metadata
	Exhausted                   // a memory, disk or quota limit was met
	Expired                     // a handle, ticket or credential is past its life
	Unavailable                 // a service behind us does not answer; a retry may help
	Canceled                    // the caller went away or asked to stop
	Timeout                     // the statement ran past its time limit
)

type row struct {
	name, remedy string
	code         codes.Code
	http         int
}

// table gives for each kind its name, gRPC and HTTP codes and the sentence that tells the
// reader of docs what to do (facts on client mapping: FailedPrecondition becomes
// "unknown" in ADBC, so Expired is InvalidArgument with its reason in the text).
var table = [...]row{
	Internal:        {"INTERNAL", "report it with the id in the message", codes.Internal, 500},
	NotFound:        {"NOT_FOUND", "check the name; SHOW TABLES lists what exists", codes.NotFound, 404},
	Invalid:         {"INVALID", "mend the statement or the parameter", codes.InvalidArgument, 400},
	Unauthenticated: {"UNAUTHENTICATED", "log in", codes.Unauthenticated, 401},
	Denied:          {"DENIED", "ask for the right to read", codes.PermissionDenied, 403},
	Unsupported:     {"NOT_SUPPORTED", "use another form", codes.Unimplemented, 501},
	Corrupt:         {"CORRUPT", "restore the file or roll the table back", codes.DataLoss, 500},
	Exhausted:       {"EXCEEDED_LIMIT", "raise the limit that is named or read less", codes.ResourceExhausted, 429},
	Expired:         {"EXPIRED", "plan again", codes.InvalidArgument, 410},
	Unavailable:     {"UNAVAILABLE", "try again", codes.Unavailable, 503},
	Canceled:        {"CANCELED", "", codes.Canceled, 499},
	Timeout:         {"EXCEEDED_TIME_LIMIT", "raise limits.query.time or read less", codes.DeadlineExceeded, 504},
}

// Kinds lists all kinds in order, for the generated documentation.
func Kinds() []Kind {
	ks := make([]Kind, len(table))
	for i := range ks {
		ks[i] = Kind(i)
	}
	return ks
}

// Error makes a Kind usable with errors.Is.
func (k Kind) Error() string { return table[k].name }

// Code is the gRPC code that tells this kind to a client.
func (k Kind) Code() codes.Code { return table[k].code }

// HTTP is the status code that tells this kind to a browser or catalog client.
func (k Kind) HTTP() int { return table[k].http }

// Remedy is a short sentence about what the reader can do.
func (k Kind) Remedy() string { return table[k].remedy }

// Error is an error with a kind and a stable id such as DIVISION_BY_ZERO.
// Text holds what failed, on which table or file, and why, in that order, and
// never a secret, a signed URL or key bytes.
type Error struct {
	Kind  Kind
	ID    string // Trino's name where one exists, else the kind's
	Text  string
	Line  int // 1-based position in the statement; 0 when there is none
	Col   int
	Cause error
}

// New makes an error of kind k with the kind's own id.
func New(k Kind, format string, args ...any) *Error {
	return WithID(k, table[k].name, format, args...)
}

// WithID makes an error of kind k under a more precise stable id.
func WithID(k Kind, id, format string, args ...any) *Error {
	e := fmt.Errorf(format, args...)
	return &Error{Kind: k, ID: id, Text: e.Error(), Cause: errors.Unwrap(e)}
}

// At returns a copy of e that points at a position in the statement (1-based).
func (e *Error) At(line, col int) *Error {
	c := *e
	c.Line, c.Col = line, col
	return &c
}

// Error renders id, position and text.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.ID)
	b.WriteString(": ")
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d:%d: ", e.Line, e.Col)
	}
	b.WriteString(e.Text)
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is reports whether target is this error's kind.
func (e *Error) Is(target error) bool {
	k, ok := target.(Kind)
	return ok && k == e.Kind
}

// Wrap says where err happened ("table lake.ns.t: data file x.parquet") and keeps its kind and id.
// An error without a kind becomes one of kind k. A nil err gives nil.
func Wrap(k Kind, err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	where := fmt.Sprintf(format, args...)
	var e *Error
	if errors.As(err, &e) {
		c := *e
		c.Text = where + ": " + e.Text
		c.Cause = err
		return &c
	}
	if ck := KindOf(err); ck != Internal {
		k = ck
	}
	return &Error{Kind: k, ID: table[k].name, Text: where + ": " + err.Error(), Cause: err}
}

// KindOf finds the kind of err; cancellation and deadlines of a context have kinds
// of their own, and an error nobody classified is Internal.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	var k Kind
	switch {
	case errors.As(err, &k):
		return k
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	}
	return Internal
}
