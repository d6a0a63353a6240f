package keys

import (
	"bytes"
	"strings"
	"testing"
)

// TestLabelsInWords: the key first, and nothing that could be taken for another.
func TestLabelsInWords(t *testing.T) {
	for label, want := range map[string]string{
		`"default" "9:anonymous," "pedido-42"`:            `pedido-42`,
		`"loja" "9:anonymous," "pedido-42"`:               `pedido-42 in loja`,
		`"default" "5:basic,3:ana," "k"`:                  `k of basic ana`,
		`"loja" "3:jwt,18:https://id.example,3:ana," "k"`: `k of jwt https://id.example ana in loja`,
		`"default" "6:header,5:Jos\u00e9," "k"`:           `k of header José`,
		`"default" "6:header,6:a of b," "k of x"`:         `"k of x" of header "a of b"`,
		`"default" "6:header,0:," "k\r\nid"`:              `"k\r\nid" of header ""`,
		`"default" "ana" "k"`:                             `k of ana`,
		`"default" "9:ana," "k"`:                          `k of 9:ana,`,
		`"default" "-1:ana," "k"`:                         `k of -1:ana,`,
		`"default" "3:ana,x" "k"`:                         `k of 3:ana,x`,
		`"default" "6:header,900:aaa"... "k"`:             `k of "6:header,900:aaa"...`,
		`loja ana k`:                                      `loja ana k`,
		`"loja" "ana"`:                                    `"loja" "ana"`,
		`"loja" "ana" "k" more`:                           `"loja" "ana" "k" more`,
	} {
		if got := inWords(label); got != want {
			t.Errorf("%s is %s, want %s", label, got, want)
		}
	}
}

// TestLongNamesDoNotHideTheKey: whose it is may be cut, which it is not.
func TestLongNamesDoNotHideTheKey(t *testing.T) {
	var row bytes.Buffer
	TableRow(&row, &Key{ID: "id", Route: strings.Repeat("/long", 20), Label: `"loja" "6:header,90:` + strings.Repeat("a", 90) + `," "pedido-42"`})
	if lines := strings.Split(row.String(), "\n"); len(lines) != 4 || !strings.HasPrefix(lines[1], "  pedido-42 of header aaa") || !strings.HasSuffix(lines[1], "…") {
		t.Errorf("the row is\n%s", row.String())
	}
}
