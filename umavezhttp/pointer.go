package umavezhttp

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// pointerNode is a set of JSON pointers (RFC 6901) as a tree: what does not
// count of a body (rule F8). A nil node is the empty set.
type pointerNode struct {
	// excluded: the value that the way to this node leads to.
	excluded bool
	// children are indexed by the name of a member as canonical JSON spells
	// it, without its quotes, or by the index of an element.
	children map[string]*pointerNode
}

// parsePointers makes a tree of pointers.
func parsePointers(pointers []string) (*pointerNode, error) {
	if len(pointers) == 0 {
		return nil, nil
	}
	root := &pointerNode{}
	for _, p := range pointers {
		switch {
		case p == "":
			return nil, errors.New(`the JSON pointer "" excludes every body as a whole`)
		case p[0] != '/':
			return nil, fmt.Errorf("the JSON pointer %q does not begin with a slash", p)
		case !utf8.ValidString(p):
			return nil, fmt.Errorf("the JSON pointer %q is not UTF-8", p)
		}
		node := root
		for token := range strings.SplitSeq(p[1:], "/") {
			name, ok := unescapePointer(token)
			if !ok {
				return nil, fmt.Errorf("the JSON pointer %q has a ~ that is followed by neither 0 nor 1", p)
			}
			node = node.grow(string(appendCanonicalText(nil, name)))
		}
		node.excluded = true
	}
	return root, nil
}

func (n *pointerNode) grow(name string) *pointerNode {
	if n.children == nil {
		n.children = map[string]*pointerNode{}
	}
	child := n.children[name]
	if child == nil {
		child = &pointerNode{}
		n.children[name] = child
	}
	return child
}

// at returns the node for a member or an element, or nil.
func (n *pointerNode) at(name []byte) *pointerNode {
	if n == nil {
		return nil
	}
	return n.children[string(name)] // this conversion does not allocate
}

// excludes reports whether the value at this node does not count.
func (n *pointerNode) excludes() bool { return n != nil && n.excluded }

func unescapePointer(token string) (string, bool) {
	for i := 0; i < len(token); i++ {
		if token[i] == '~' && (i+1 == len(token) || token[i+1] != '0' && token[i+1] != '1') {
			return "", false
		}
	}
	// In this order: "~01" is "~1", not "/".
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~"), true
}
