package serve

import (
	"strconv"

	"github.com/goccy/go-yaml/ast"
)

// nodeAt follows names of members and indices of elements down from a node, as
// far as they lead.
func nodeAt(node ast.Node, path []string) ast.Node {
	for _, name := range path {
		next := childOf(node, name)
		if next == nil {
			return node
		}
		node = next
	}
	return node
}

// childOf returns what stands under a name, or at an index; nil: nothing.
func childOf(node ast.Node, name string) ast.Node {
	switch n := node.(type) {
	case *ast.MappingNode:
		for _, member := range n.Values {
			if found := childOf(member, name); found != nil {
				return found
			}
		}
	case *ast.MappingValueNode:
		if n.Key.GetToken().Value == name {
			return n.Value
		}
	case *ast.SequenceNode:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(n.Values) {
			return n.Values[i]
		}
	case *ast.AnchorNode:
		return childOf(n.Value, name)
	case *ast.TagNode:
		return childOf(n.Value, name)
	}
	return nil
}
