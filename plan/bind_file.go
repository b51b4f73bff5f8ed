package plan

import (
	"path/filepath"
	"strings"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/sql"
)

// fileName binds a file in FROM. Its columns go by the alias or by the file's name without its extension.
func (b *binder) fileName(f *sql.FileName) (rel, *scope, error) {
	if b.env.Files == nil {
		return nil, nil, b.errorf(f.Pos, fault.Denied, "NOT_SUPPORTED",
			"a server does not read files by name; FROM '...' works in `skua sql` without --server only, or name a table")
	}
	tab := b.files[f.Path]
	if tab == nil {
		var err error
		if tab, err = b.env.Files(b.ctx, f.Path); err != nil {
			return nil, nil, b.place(f.Pos, err)
		}
		if b.files == nil {
			b.files = map[string]*catalog.Table{}
		}
		b.files[f.Path] = tab
	}
	name := filepath.Base(f.Path)
	if i := strings.IndexByte(name, '.'); i > 0 {
		name = name[:i]
	}
	qual := []string{name}
	if f.Alias != nil {
		qual = []string{f.Alias.Name.Name}
	}
	// The state of files has no id: nothing is pinned.
	return b.scan(f.Pos, tab, catalog.Snapshot{Present: true, Schema: tab.Schema}, f.Sample, f.Alias, qual)
}
