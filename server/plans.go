package server

import (
	"strconv"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/skua-db/skua/plan"
)

// plans remembers what GetFlightInfo planned, by ticket, for the DoGet that follows. A plan may hold rows (of SHOW and
// information_schema, or of VALUES): such plans are few and forgotten once they are fetched, or clients that only plan could fill
// the memory. A plan that is not here any more is made again.
type plans struct {
	small *lru.Cache[string, *plan.Prepared]
	large *lru.Cache[string, *plan.Prepared]
}

const (
	smallPlans = 512
	largePlans = 4
	// smallValues is how many values a small plan holds at most.
	smallValues = 10_000
)

// planKey names the plan of a ticket under the access policy in force: one made under another is made again.
func (s *Server) planKey(ticket []byte) string {
	if s.opt.Policy == nil {
		return string(ticket)
	}
	return string(strconv.AppendUint(append(ticket[:len(ticket):len(ticket)], 0), s.opt.Policy.Version(), 10))
}

func newPlans() (*plans, error) {
	small, err := lru.New[string, *plan.Prepared](smallPlans)
	if err != nil {
		return nil, err
	}
	large, err := lru.New[string, *plan.Prepared](largePlans)
	return &plans{small, large}, err
}

func (p *plans) add(ticket string, made *plan.Prepared) {
	if len(ticket) > maxRememberedBytes || made.Root != nil && values(made.Root) > smallValues {
		p.large.Add(ticket, made)
		return
	}
	p.small.Add(ticket, made)
}

func (p *plans) get(ticket string) (*plan.Prepared, bool) {
	if made, ok := p.small.Get(ticket); ok {
		return made, true
	}
	made, ok := p.large.Get(ticket)
	p.large.Remove(ticket)
	return made, ok
}

// values counts the values that a plan holds.
func values(n plan.Node) int {
	total := 0
	if v, ok := n.(*plan.Values); ok {
		total = len(v.Rows) * len(v.Cols)
	}
	for _, in := range n.Inputs() {
		total += values(in)
	}
	return total
}
