package server

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/skua-db/skua/fault"
)

// handle is all that a statement's ticket or prepared handle means. It travels sealed, so any server with the same keys
// answers it and nobody else can make or read one.
type handle struct {
	ID        string           `json:"i"`
	Principal string           `json:"p"`
	SQL       string           `json:"q"`
	Session   sessionState     `json:"o"`
	Params    []byte           `json:"b,omitempty"` // bound rows as an Arrow IPC stream
	Pins      map[string]int64 `json:"s,omitempty"` // full table name -> snapshot id, once planned
	Expiry    int64            `json:"e"`           // Unix seconds
}

func (s *Server) newHandle(ctx context.Context, sql string) *handle {
	return &handle{
		ID: uuid.NewString(), Principal: callerOf(ctx).principal, SQL: sql, Session: s.sessionOf(ctx),
		Expiry: time.Now().Add(s.opt.HandleLife).Unix(),
	}
}

func (s *Server) sealHandle(h *handle) ([]byte, error) {
	b, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	return s.opt.Sealer.Seal(b), nil
}

// openHandle opens a blob for the caller: it must be the caller's own and not past its life.
func (s *Server) openHandle(ctx context.Context, blob []byte) (*handle, error) {
	plain, err := s.opt.Sealer.Open(blob)
	if err != nil {
		return nil, err
	}
	var h handle
	if err := json.Unmarshal(plain, &h); err != nil || h.SQL == "" {
		return nil, fault.New(fault.Invalid, "handle is not a statement's")
	}
	if h.Principal != callerOf(ctx).principal {
		return nil, fault.New(fault.Denied, "handle belongs to another user")
	}
	if time.Now().Unix() > h.Expiry {
		return nil, fault.New(fault.Expired, "handle has expired; plan again")
	}
	return &h, nil
}
