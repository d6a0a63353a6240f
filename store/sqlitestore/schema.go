package sqlitestore

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"sync"

	"modernc.org/sqlite"
)

// object is a table, index, trigger or view, as SQLite tells of it.
type object struct {
	kind, name, table, sql string
	columns                []string // of a table: each with its declaration
}

// checkSchema holds the file's schema against the one that the migrations make
// in an empty database, and names the first difference. A missing column would
// fail a write in the middle of a payment; an index over lower(id) would make
// two keys one.
func (c *conn) checkSchema() error {
	want, err := wantedSchema()
	if err != nil {
		return err
	}
	have, err := c.schema()
	if err != nil {
		return err
	}
	for _, w := range want {
		i := slices.IndexFunc(have, func(o object) bool { return o.kind == w.kind && o.name == w.name })
		if i < 0 {
			return fmt.Errorf("%w: %s %s is missing", ErrSchemaDrift, w.kind, w.name)
		}
		if err := w.compare(have[i]); err != nil {
			return err
		}
		have = slices.Delete(have, i, i+1)
	}
	for _, o := range have {
		return fmt.Errorf("%w: %s %s on table %s is not one of ours", ErrSchemaDrift, o.kind, o.name, o.table)
	}
	return nil
}

// compare names the first difference between what is wanted and what is there.
func (o object) compare(have object) error {
	left := slices.Clone(have.columns)
	for _, want := range o.columns {
		name, _, _ := strings.Cut(want, " ")
		i := slices.IndexFunc(left, func(c string) bool { return strings.HasPrefix(c, name+" ") })
		if i < 0 {
			return fmt.Errorf("%w: table %s lacks the column %s", ErrSchemaDrift, o.name, want)
		}
		if left[i] != want {
			return fmt.Errorf("%w: table %s has the column %s, which should be %s", ErrSchemaDrift, o.name, left[i], want)
		}
		left = slices.Delete(left, i, i+1)
	}
	if len(left) > 0 {
		return fmt.Errorf("%w: table %s has a column that is not ours: %s", ErrSchemaDrift, o.name, left[0])
	}
	if have.sql != o.sql || have.table != o.table {
		return fmt.Errorf("%w: %s %s is declared as %q", ErrSchemaDrift, o.kind, o.name, have.sql)
	}
	return nil
}

// wantedSchema is what the migrations make in an empty database.
var wantedSchema = sync.OnceValues(func() ([]object, error) {
	connector, err := sqlite.NewConnector(":memory:")
	if err != nil {
		return nil, err
	}
	dc, err := connector.Connect(context.Background())
	if err != nil {
		return nil, err
	}
	c := newConn(dc)
	defer func() { _ = c.close() }() // in memory
	if err := c.script(Schema()); err != nil {
		return nil, fmt.Errorf("umavez: sqlite: the schema: %w", err)
	}
	return c.schema()
})

// schema lists our tables and everything that hangs on them. What else is in
// the file is its owner's business.
func (c *conn) schema() ([]object, error) {
	var all []object
	err := c.ask(`SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema
		WHERE tbl_name LIKE 'umavez\_%' ESCAPE '\' ORDER BY tbl_name, type DESC, name`,
		func(v []driver.Value) error {
			s := scanner{values: v}
			all = append(all, object{kind: s.text(), name: s.text(), table: s.text(), sql: s.text()})
			return s.err
		})
	if err != nil {
		return nil, fmt.Errorf("umavez: sqlite: read the schema: %w", err)
	}
	for i := range all {
		if all[i].kind != "table" {
			continue
		}
		if all[i].columns, err = c.columnsOf(all[i].name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// columnsOf returns a table's columns, each as its name and declaration.
func (c *conn) columnsOf(table string) ([]string, error) {
	var columns []string
	err := c.ask(`SELECT name || ' ' || type || iif("notnull", ' NOT NULL', '') || iif(pk, ' PRIMARY KEY', '') ||
		iif(dflt_value IS NULL, '', ' DEFAULT ' || dflt_value) FROM pragma_table_xinfo(?) ORDER BY cid`,
		func(v []driver.Value) error {
			s := scanner{values: v}
			columns = append(columns, s.text())
			return s.err
		}, table)
	if err != nil {
		return nil, fmt.Errorf("umavez: sqlite: read the columns of %s: %w", table, err)
	}
	return columns, nil
}

// checkIntegrity has SQLite check the small tables that everything rests on. A
// check of the whole file would take minutes on a large one, at every start.
func (c *conn) checkIntegrity() error {
	for _, table := range []string{"umavez_migration", "umavez_namespace", "umavez_audit", "umavez_failed_commit"} {
		err := c.ask("PRAGMA quick_check("+table+")", func(v []driver.Value) error {
			if said := fmt.Sprint(v[0]); said != "ok" {
				return fmt.Errorf("umavez: sqlite: the file is damaged: table %s: %s", table, said)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
