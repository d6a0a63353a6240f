package umavezhttp

import (
	"bytes"
	"slices"
	"strconv"
)

// maxJSONDepth bounds how deep values may be nested. Each level may be copied
// once to put its members in order, so the depth bounds the work for a byte.
const maxJSONDepth = 64

// canonJSON writes JSON in one canonical form, in one pass and without building
// a tree: no white space, members sorted by name, strings with the fewest
// escapes, numbers as they are (rule F4). Two documents have the same form
// exactly when they differ in nothing but that.
//
// It is no encoding/json: that would merge numbers that a float64 cannot tell
// apart, the last of two equal names with the only one, and lone surrogates with
// each other. What is not exactly JSON has no canonical form here.
//
// The zero value is ready, and is reused for its memory.
type canonJSON struct {
	in  []byte
	pos int
	out []byte
	// members is a stack: those of every object that is still open.
	members []member
	scratch []byte
}

// member is where a member of an object lies in the output: `"name":value,`.
type member struct {
	start, nameEnd, end int
	excluded            bool
}

// canonical returns the canonical form of a document without what exclude
// excludes, or false if it has none. It is good until the next call.
func (c *canonJSON) canonical(document []byte, exclude *pointerNode) ([]byte, bool) {
	c.in, c.pos = document, 0
	c.members = c.members[:0]
	// The form is never longer than the document, so this is all it takes.
	c.out = slices.Grow(c.out[:0], len(document)+1)
	c.space()
	ok := c.value(0, exclude)
	c.space()
	ok = ok && c.pos == len(c.in)
	c.in = nil
	return c.out, ok
}

// forget drops the memory that a large document has left behind.
func (c *canonJSON) forget() {
	if cap(c.out) > mostPooled {
		c.out = nil
	}
	if cap(c.scratch) > mostPooled {
		c.scratch = nil
	}
	if cap(c.members) > mostPooled/32 {
		c.members = nil
	}
}

func (c *canonJSON) space() {
	for c.pos < len(c.in) {
		switch c.in[c.pos] {
		case ' ', '\t', '\n', '\r':
			c.pos++
		default:
			return
		}
	}
}

// take reads one byte, if it is b.
func (c *canonJSON) take(b byte) bool {
	if c.pos < len(c.in) && c.in[c.pos] == b {
		c.pos++
		return true
	}
	return false
}

// value reads a value and writes its form.
func (c *canonJSON) value(depth int, exclude *pointerNode) bool {
	if c.pos == len(c.in) || depth > maxJSONDepth {
		return false
	}
	switch c.in[c.pos] {
	case '{':
		return c.object(depth, exclude)
	case '[':
		return c.array(depth, exclude)
	case '"':
		return c.text()
	case 't':
		return c.literal("true")
	case 'f':
		return c.literal("false")
	case 'n':
		return c.literal("null")
	}
	return c.number()
}

func (c *canonJSON) literal(word string) bool {
	if !bytes.HasPrefix(c.in[c.pos:], []byte(word)) {
		return false
	}
	c.pos += len(word)
	c.out = append(c.out, word...)
	return true
}

// number copies a number's text as it is. 1, 1.0 and 1e0 are three numbers: to
// say which of them mean the same, one would have to know how the operation
// reads them.
func (c *canonJSON) number() bool {
	start := c.pos
	c.take('-')
	if !c.take('0') && !c.digits() {
		return false
	}
	if c.take('.') && !c.digits() {
		return false
	}
	if c.take('e') || c.take('E') {
		_ = c.take('+') || c.take('-')
		if !c.digits() {
			return false
		}
	}
	c.out = append(c.out, c.in[start:c.pos]...)
	return true
}

func (c *canonJSON) digits() bool {
	start := c.pos
	for c.pos < len(c.in) && '0' <= c.in[c.pos] && c.in[c.pos] <= '9' {
		c.pos++
	}
	return c.pos > start
}

func (c *canonJSON) array(depth int, exclude *pointerNode) bool {
	c.pos++
	c.out = append(c.out, '[')
	if c.space(); c.take(']') {
		c.out = append(c.out, ']')
		return true
	}
	for i := 0; ; i++ {
		c.space()
		element := exclude.element(i)
		start := len(c.out)
		if !c.value(depth+1, element) {
			return false
		}
		if element.excludes() {
			// What remains is no JSON value, so that it is like no other element.
			c.out = append(c.out[:start], 0)
		}
		c.space()
		if c.take(']') {
			c.out = append(c.out, ']')
			return true
		}
		if !c.take(',') {
			return false
		}
		c.out = append(c.out, ',')
	}
}

// element returns the node for the i-th element of an array, or nil.
func (n *pointerNode) element(i int) *pointerNode {
	if n == nil {
		return nil
	}
	var digits [20]byte
	return n.at(strconv.AppendInt(digits[:0], int64(i), 10))
}

func (c *canonJSON) object(depth int, exclude *pointerNode) bool {
	c.pos++
	c.out = append(c.out, '{')
	if c.space(); c.take('}') {
		c.out = append(c.out, '}')
		return true
	}
	first, body := len(c.members), len(c.out)
	inOrder := true
	for {
		m, ok := c.member(depth, exclude)
		if !ok {
			return false
		}
		if inOrder = inOrder && !m.excluded; inOrder && len(c.members) > first {
			inOrder = c.compare(c.out, c.members[len(c.members)-1], m) < 0
		}
		c.members = append(c.members, m)
		c.space()
		if c.take('}') {
			break
		}
		if !c.take(',') {
			return false
		}
	}
	if !inOrder && !c.arrange(c.members[first:], body) {
		return false
	}
	c.members = c.members[:first]
	// Every member ends in a comma; the last one's is where the object ends.
	if len(c.out) > body {
		c.out = c.out[:len(c.out)-1]
	}
	c.out = append(c.out, '}')
	return true
}

// member reads one member and writes it as `"name":value,`.
func (c *canonJSON) member(depth int, exclude *pointerNode) (m member, ok bool) {
	m.start = len(c.out)
	if c.space(); c.pos == len(c.in) || c.in[c.pos] != '"' || !c.text() {
		return m, false
	}
	m.nameEnd = len(c.out)
	if c.space(); !c.take(':') {
		return m, false
	}
	node := exclude.at(c.out[m.start+1 : m.nameEnd-1])
	m.excluded = node.excludes()
	c.out = append(c.out, ':')
	if c.space(); !c.value(depth+1, node) {
		return m, false
	}
	c.out = append(c.out, ',')
	m.end = len(c.out)
	return m, true
}

// compare orders members by their names' bytes. Canonical spelling is one to
// one, so that equal spellings are equal names.
func (*canonJSON) compare(out []byte, a, b member) int {
	return bytes.Compare(out[a.start+1:a.nameEnd-1], out[b.start+1:b.nameEnd-1])
}

// arrange puts the members of an object, which lie in the output from body on,
// in order, and leaves out those that are excluded. It is false when a name is
// there twice: which of the two counts depends on the reader.
func (c *canonJSON) arrange(members []member, body int) bool {
	out := c.out
	slices.SortFunc(members, func(a, b member) int { return c.compare(out, a, b) })
	for i := 1; i < len(members); i++ {
		if c.compare(out, members[i-1], members[i]) == 0 {
			return false
		}
	}
	c.scratch = append(c.scratch[:0], c.out[body:]...)
	c.out = c.out[:body]
	for _, m := range members {
		if !m.excluded {
			c.out = append(c.out, c.scratch[m.start-body:m.end-body]...)
		}
	}
	return true
}
