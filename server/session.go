package server

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/google/uuid"
	"google.golang.org/grpc/metadata"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/vector"
)

// peerSession begins the id of a session that hangs on a connection, which no cookie may name.
const peerSession = "peer "

// sessionCookie names the session for clients that keep cookies.
const sessionCookie = "arrow_flight_session_id"

const (
	sessionIdle = 12 * time.Hour
	maxSessions = 100_000
	// maxNameBytes bounds what a session keeps of a client's words.
	maxNameBytes = 4096
)

// sessionOptions are the options a client may set, each with the check of its value.
var sessionOptions = map[string]func(string) error{
	"catalog": func(string) error { return nil }, // the server knows which there are: checkOption
	"schema": func(v string) error {
		if len(v) > maxNameBytes {
			return fault.New(fault.Invalid, "a schema's name has at most %d bytes", maxNameBytes)
		}
		return nil
	},
	"dialect": func(v string) error {
		switch v {
		case "trino", "spark", "duckdb":
			return nil
		}
		return fault.New(fault.Invalid, "dialect %q is not known; use trino, spark or duckdb", v)
	},
	"time_zone": func(v string) error {
		if _, err := time.LoadLocation(v); err != nil || v == "" {
			return fault.New(fault.Invalid, "time zone %q is not known", v)
		}
		return nil
	},
	// What variants are on the wire: JSON text, or Arrow's extension arrow.parquet.variant.
	"variants": func(v string) error {
		switch v {
		case "json", "arrow":
			return nil
		}
		return fault.New(fault.Invalid, "variants is json or arrow, not %q", v)
	},
	// The server knows how many: checkOption.
	"workers":    func(string) error { return nil },
	"chunk_rows": func(string) error { return nil },
	"max_recursion_depth": func(v string) error {
		if n, err := strconv.Atoi(v); err != nil || n < 1 || n > plan.MaxRecursion {
			return fault.New(fault.Invalid, "max_recursion_depth is a number from 1 to %d, not %q", plan.MaxRecursion, v)
		}
		return nil
	},
}

// knownOptions lists them for messages.
const knownOptions = "catalog, schema, dialect, time_zone, variants, workers, chunk_rows and max_recursion_depth"

// session holds the options of one client.
type session struct {
	principal, id string

	mu      sync.Mutex
	options map[string]string
	used    time.Time
}

func (s *session) option(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.options[key]
}

func (s *session) set(key, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if value == "" {
		delete(s.options, key)
		return
	}
	s.options[key] = value
}

// sessions are kept by principal and id: nobody reaches another's by guessing an id.
type sessions struct {
	mu  sync.Mutex
	all map[[2]string]*session
}

func newSessions() *sessions { return &sessions{all: map[[2]string]*session{}} }

func (ss *sessions) get(principal, id string) *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	key := [2]string{principal, id}
	now := time.Now()
	s, ok := ss.all[key]
	if ok {
		s.mu.Lock()
		s.used = now
		s.mu.Unlock()
		return s
	}
	// A session without options is not worth keeping; set puts it into the map.
	return &session{principal: principal, id: id, options: map[string]string{}, used: now}
}

// keep stores a session that has options now under an id, and drops idle ones when there are too many.
func (ss *sessions) keep(s *session, id string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if len(ss.all) >= maxSessions {
		ss.trim()
	}
	ss.all[[2]string{s.principal, id}] = s
}

// trim drops the sessions that are idle for long, and when all are fresh (a client makes ever new ones) the older half.
func (ss *sessions) trim() {
	oldest := time.Now().Add(-sessionIdle)
	used := make([]time.Time, 0, len(ss.all))
	for k, o := range ss.all {
		o.mu.Lock()
		at := o.used
		o.mu.Unlock()
		if at.Before(oldest) {
			delete(ss.all, k)
			continue
		}
		used = append(used, at)
	}
	if len(ss.all) < maxSessions {
		return
	}
	slices.SortFunc(used, time.Time.Compare)
	middle := used[len(used)/2]
	for k, o := range ss.all {
		o.mu.Lock()
		old := !o.used.After(middle)
		o.mu.Unlock()
		if old {
			delete(ss.all, k)
		}
	}
}

func (ss *sessions) drop(s *session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for k, o := range ss.all {
		if o == s {
			delete(ss.all, k)
		}
	}
}

func cookieSession(md metadata.MD) string {
	for _, line := range md.Get("cookie") {
		cookies, err := http.ParseCookie(line)
		if err != nil {
			continue
		}
		for _, c := range cookies {
			if c.Name == sessionCookie && !strings.HasPrefix(c.Value, peerSession) && len(c.Value) <= maxNameBytes {
				return c.Value
			}
		}
	}
	return ""
}

// setSessionOptions sets options of the caller's session. Every option is tried; those that fail are told one by
// one, as the protocol wants it.
func (s *Server) setSessionOptions(ctx context.Context, req *flight.SetSessionOptionsRequest, setHeader func(metadata.MD) error) (*flight.SetSessionOptionsResult, error) {
	ses := callerOf(ctx).session
	res := &flight.SetSessionOptionsResult{Errors: map[string]*flight.SetSessionOptionsResultError{}}
	failed := func(key string, code pb.SetSessionOptionsResult_ErrorValue) {
		res.Errors[key] = &flight.SetSessionOptionsResultError{Value: code}
	}
	for key, v := range req.GetSessionOptions() {
		if _, known := sessionOptions[key]; !known {
			failed(key, flight.SetSessionOptionsResultErrorInvalidName)
			continue
		}
		text := ""
		if v.GetOptionValue() != nil {
			sv, ok := v.GetOptionValue().(*pb.SessionOptionValue_StringValue)
			if !ok || sv.StringValue != "" && s.checkOption(ctx, key, sv.StringValue) != nil {
				failed(key, flight.SetSessionOptionsResultErrorInvalidValue)
				continue
			}
			text = sv.StringValue
		}
		ses.set(key, text)
	}
	s.sessions.keep(ses, ses.id)
	return res, s.sendCookie(ctx, ses, setHeader)
}

func (s *Server) checkOption(ctx context.Context, key, value string) error {
	seen := visible{ctx, s}
	if _, ok := seen.Catalog(value); key == "catalog" && !ok {
		return fault.WithID(fault.NotFound, "CATALOG_NOT_FOUND", "catalog %q does not exist; there are %s", value, strings.Join(seen.Names(), ", "))
	}
	switch key {
	case "workers":
		return countOption(key, value, s.opt.Workers, "limits.workers")
	case "chunk_rows":
		return countOption(key, value, s.opt.ChunkRows, "limits.chunk_rows")
	}
	return sessionOptions[key](value)
}

// countOption checks a number that a session may lower but not raise above a setting.
func countOption(key, value string, most int, setting string) error {
	if n, err := strconv.Atoi(value); err != nil || n < 1 || n > most {
		return fault.New(fault.Invalid, "%s is a number from 1 to %d, as %s has it, not %q", key, most, setting, value)
	}
	return nil
}

// sendCookie gives a client that keeps cookies a session of its own.
func (s *Server) sendCookie(ctx context.Context, ses *session, setHeader func(metadata.MD) error) error {
	md, _ := metadata.FromIncomingContext(ctx)
	if cookieSession(md) != "" {
		return nil
	}
	id := uuid.NewString()
	s.sessions.keep(ses, id)
	c := http.Cookie{Name: sessionCookie, Value: id, Path: "/"}
	return setHeader(metadata.Pairs("set-cookie", c.String()))
}

func (s *Server) getSessionOptions(ctx context.Context) *flight.GetSessionOptionsResult {
	res := &flight.GetSessionOptionsResult{SessionOptions: map[string]*flight.SessionOptionValue{}}
	for k, v := range s.sessionOf(ctx).named() {
		res.SessionOptions[k] = &flight.SessionOptionValue{OptionValue: &pb.SessionOptionValue_StringValue{StringValue: v}}
	}
	return res
}

// sessionState is the part of a session that a statement depends on; it travels in handles.
type sessionState struct {
	Catalog string `json:"c,omitempty"`
	Schema  string `json:"s,omitempty"`
	Dialect string `json:"d,omitempty"`
	Zone    string `json:"z,omitempty"`
	// Variants is the form of variants on the wire, json or arrow.
	Variants string `json:"v,omitempty"`
	// Workers and ChunkRows are 0 where the session leaves them to the server.
	Workers   int `json:"w,omitempty"`
	ChunkRows int `json:"r,omitempty"`
	// MaxRecursion is 0 where the session leaves it to the planner.
	MaxRecursion int `json:"m,omitempty"`
}

// sessionOf gives the state of the caller's session with the server's defaults filled in.
func (s *Server) sessionOf(ctx context.Context) sessionState {
	st := s.optionsOf(callerOf(ctx).session)
	// JDBC and others pass catalog and schema as headers on every call.
	md, _ := metadata.FromIncomingContext(ctx)
	for key, dst := range map[string]*string{"catalog": &st.Catalog, "schema": &st.Schema, "dialect": &st.Dialect, "variants": &st.Variants} {
		if v := first(md, key); *dst == "" && v != "" && sessionOptions[key](v) == nil {
			*dst = v
		}
	}
	return s.filled(st)
}

func (s *Server) optionsOf(ses *session) sessionState {
	st := sessionState{Catalog: ses.option("catalog"), Schema: ses.option("schema"), Dialect: ses.option("dialect"), Zone: ses.option("time_zone"), Variants: ses.option("variants")}
	st.Workers, _ = strconv.Atoi(ses.option("workers")) // checked when it was set
	st.ChunkRows, _ = strconv.Atoi(ses.option("chunk_rows"))
	st.MaxRecursion, _ = strconv.Atoi(ses.option("max_recursion_depth"))
	return st
}

func (s *Server) stateOf(ses *session) sessionState { return s.filled(s.optionsOf(ses)) }

// filled puts the server's defaults where nothing is set.
func (s *Server) filled(st sessionState) sessionState {
	if st.Catalog == "" {
		st.Catalog = s.opt.DefaultCatalog
		if st.Schema == "" {
			st.Schema = s.opt.DefaultSchema
		}
	}
	if st.Dialect == "" {
		st.Dialect = "trino"
	}
	if st.Zone == "" {
		st.Zone = "UTC"
	}
	if st.Variants == "" {
		st.Variants = "json"
	}
	if st.Workers == 0 {
		st.Workers = s.opt.Workers
	}
	if st.ChunkRows == 0 {
		st.ChunkRows = s.opt.ChunkRows
	}
	if st.MaxRecursion == 0 {
		st.MaxRecursion = plan.DefaultRecursion
	}
	return st
}

// wire is the form in which the session's clients take values.
func (s sessionState) wire() vector.Wire { return vector.Wire{Variants: s.Variants == "arrow"} }

// named lists the state as session options.
func (s sessionState) named() map[string]string {
	return map[string]string{"catalog": s.Catalog, "schema": s.Schema, "dialect": s.Dialect, "time_zone": s.Zone, "variants": s.Variants,
		"workers": strconv.Itoa(s.Workers), "chunk_rows": strconv.Itoa(s.ChunkRows), "max_recursion_depth": strconv.Itoa(s.MaxRecursion)}
}

// apply makes the change of the session that a USE or SET SESSION statement asks for, and says what it did.
func (s *Server) apply(ctx context.Context, ses *session, set *plan.Setting) (done string, err error) {
	if set.Catalog != "" { // USE
		ses.set("catalog", set.Catalog)
		ses.set("schema", set.Schema)
		s.sessions.keep(ses, ses.id)
		if set.Schema == "" {
			return "catalog " + set.Catalog, nil
		}
		return "schema " + set.Catalog + "." + set.Schema, nil
	}
	if _, known := sessionOptions[set.Name]; !known {
		return "", fault.WithID(fault.Invalid, "INVALID_SESSION_PROPERTY", "session option %q does not exist; there are %s", set.Name, knownOptions)
	}
	value := set.Value
	if set.Reset {
		value = ""
	}
	if value != "" || !set.Reset {
		if err := s.checkOption(ctx, set.Name, value); err != nil {
			return "", err
		}
	}
	ses.set(set.Name, value)
	s.sessions.keep(ses, ses.id)
	return set.Name + " " + s.stateOf(ses).named()[set.Name], nil
}

func (s *Server) closeSession(ctx context.Context) *flight.CloseSessionResult {
	s.sessions.drop(callerOf(ctx).session)
	return &flight.CloseSessionResult{Status: flight.CloseSessionResultClosed}
}
