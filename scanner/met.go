package scanner

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// met remembers what was met once, so that work that pays from the second time on is not done for what is met once only.
type met[K comparable] struct {
	mu   sync.Mutex
	seen *simplelru.LRU[K, struct{}]
}

// rememberedMeetings is how many are remembered.
const rememberedMeetings = 1 << 14

func newMet[K comparable]() *met[K] {
	seen, err := simplelru.NewLRU[K, struct{}](rememberedMeetings, nil)
	if err != nil {
		panic(err) // the size is ours
	}
	return &met[K]{seen: seen}
}

// again reports whether k was met before.
func (m *met[K]) again(k K) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen.Contains(k) {
		return true
	}
	m.seen.Add(k, struct{}{})
	return false
}
