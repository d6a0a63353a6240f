package proxy

import (
	"reflect"
	"slices"

	"github.com/umavez/umavez/umavezhttp"
)

// comparisons are the different ways in which these routes compare requests.
// Each route gets those of all others: a key that was used on one route and
// comes on another must be told apart by the way of the first (rule F3), and then
// it is a key for another request (rule F10), and not an answer that is out of
// reach. A request whose route is a new one since a change of the settings is
// recognised for the same reason.
func comparisons(routes []umavezhttp.Route) []umavezhttp.Comparison {
	var all []umavezhttp.Comparison
	for _, rt := range routes {
		own := umavezhttp.Comparison{Raw: rt.Raw, Exclude: rt.Exclude, Headers: rt.Headers, Host: rt.Host}
		if !slices.ContainsFunc(all, func(c umavezhttp.Comparison) bool { return reflect.DeepEqual(c, own) }) {
			all = append(all, own)
		}
	}
	return all
}
