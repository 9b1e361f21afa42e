package journal

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed migrations
var migrations embed.FS

// migrate brings the schema up to date. One that is newer than this program is refused
// and left as it is.
func migrate(ctx context.Context, db *sql.DB, d goose.Dialect, folder string) error {
	files, err := fs.Sub(migrations, "migrations/"+folder)
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	p, err := goose.NewProvider(d, db, files)
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	sources := p.ListSources()
	newest := sources[len(sources)-1].Version
	const tries = 5 // two that start at once on an empty file: one makes the tables, the other finds them
	for try := 1; ; try++ {
		have, err := p.GetDBVersion(ctx)
		if err == nil && have > newest {
			return fmt.Errorf("the journal has schema %d and this sluice knows up to %d; run the newer one that wrote it", have, newest)
		}
		if err == nil && have == newest {
			return nil
		}
		if err == nil {
			_, err = p.Up(ctx)
		}
		if err == nil {
			return nil
		}
		if try == tries || ctx.Err() != nil {
			return fmt.Errorf("bring the journal up to date: %w", err)
		}
	}
}
