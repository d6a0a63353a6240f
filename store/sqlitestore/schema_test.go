package sqlitestore

import (
	"errors"
	"strings"
	"testing"
)

// changed makes a file with the schema, runs SQL on it, and opens it again.
func changed(t *testing.T, sql string) error {
	t.Helper()
	path := file(t)
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	done(t, s, "k", []byte("answer"))
	if err := s.writer.c.script(sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = Open(t.Context(), path, Options{})
	if err == nil {
		err = s.Close()
	}
	return err
}

func TestSchemaDriftIsRefused(t *testing.T) {
	for _, c := range []struct{ name, sql, says string }{
		{"missing column", "ALTER TABLE umavez_record DROP COLUMN answer", "lacks the column answer BLOB"},
		{"renamed column", "ALTER TABLE umavez_record RENAME COLUMN fence TO token", "lacks the column fence INTEGER NOT NULL"},
		{"another column", "ALTER TABLE umavez_record ADD COLUMN note TEXT", "a column that is not ours: note TEXT"},
		{"missing index", "DROP INDEX umavez_record_due", "index umavez_record_due is missing"},
		{"missing table", "DROP TABLE umavez_namespace", "table umavez_namespace is missing"},
		{"missing audit trail", "DROP TABLE umavez_audit", "table umavez_audit is missing"},
		{"a trigger on the audit trail", "CREATE TRIGGER eraser AFTER INSERT ON umavez_audit BEGIN DELETE FROM umavez_audit; END", "trigger eraser"},
		{"an index that folds keys", "CREATE UNIQUE INDEX folded ON umavez_record (lower(id))", "folded"},
		{
			"a trigger", "CREATE TRIGGER eraser AFTER UPDATE ON umavez_record BEGIN DELETE FROM umavez_record; END",
			"trigger eraser on table umavez_record",
		},
		{"other type", remade("answer      BLOB", "answer      TEXT"), "column answer TEXT, which should be answer BLOB"},
		{"other collation", remade("route       TEXT    NOT NULL", "route       TEXT    NOT NULL COLLATE NOCASE"), "table umavez_record is declared as"},
		{"not strict", remade(") STRICT;", ");"), "table umavez_record is declared as"},
		{"no check", remade(" CHECK (length(id) = 32)", ""), "table umavez_record is declared as"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := changed(t, c.sql)
			if !errors.Is(err, ErrSchemaDrift) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("open: %v, want ErrSchemaDrift that says %q", err, c.says)
			}
		})
	}
}

// remade is SQL that makes the table of records anew, otherwise declared.
func remade(from, to string) string {
	all, err := migrations()
	if err != nil {
		panic(err)
	}
	begin := strings.Index(all[0].sql, "CREATE TABLE IF NOT EXISTS umavez_record")
	end := strings.Index(all[0].sql[begin:], "CREATE TABLE IF NOT EXISTS umavez_namespace")
	table := strings.Replace(all[0].sql[begin:begin+end], from, to, 1)
	return "DROP TABLE umavez_record; " + table
}

func TestNewerSchemaIsRefused(t *testing.T) {
	err := changed(t, "INSERT INTO umavez_migration VALUES (2, '0002_later', 0)")
	if !errors.Is(err, ErrSchemaNewer) || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("open: %v, want ErrSchemaNewer that names version 2", err)
	}
}

// The file may be an application's own: what is not ours does not matter.
func TestOtherTablesAreLeftAlone(t *testing.T) {
	if err := changed(t, "CREATE TABLE orders (id INTEGER PRIMARY KEY); CREATE INDEX by_id ON orders (id)"); err != nil {
		t.Errorf("open beside other tables: %v", err)
	}
}

// A migration looks before it creates: objects that are there already, and are
// right, do not disturb it.
func TestMigrationLooksFirst(t *testing.T) {
	if err := changed(t, "DELETE FROM umavez_migration"); err != nil {
		t.Errorf("migrating over what is there: %v", err)
	}
}

func TestOpenAgainWritesNothing(t *testing.T) {
	path := file(t)
	s := open(t, path, Options{})
	done(t, s, "k", []byte("answer"))
	// With the write lock taken, a second store can be opened all the same.
	if _, err := s.writer.c.exec(stBegin, 0); err != nil {
		t.Fatal(err)
	}
	second := open(t, path, Options{})
	if rec := get(t, second, "k"); string(rec.Answer) != "answer" {
		t.Errorf("the second store sees %q", rec.Answer)
	}
	if err := s.writer.end(); err != nil {
		t.Fatal(err)
	}
}

func TestSchemaIsWhatOpenMakes(t *testing.T) {
	s, _ := fresh(t)
	have, err := s.writer.c.schema()
	if err != nil {
		t.Fatal(err)
	}
	if len(have) < 6 {
		t.Errorf("the schema has %d objects: %v", len(have), have)
	}
	for _, o := range have {
		if o.sql != "" && !strings.Contains(Schema(), strings.TrimPrefix(o.sql, "CREATE TABLE ")) &&
			!strings.Contains(Schema(), strings.TrimPrefix(o.sql, "CREATE INDEX ")) {
			t.Errorf("Schema does not contain %s", o.sql)
		}
	}
}
