package umavezhttp

import "github.com/umavez/umavez"

// checkRecovery refuses settings of a route under which lost operations could
// not be finished as they promise, and fills in what is withheld.
func (rt Route) checkRecovery(eng *umavez.Engine) (Route, error) {
	if !rt.KeepRequest {
		switch {
		case rt.PlainRequests, len(rt.Withhold) > 0, rt.Restore != nil,
			rt.CompleteAfter != 0, rt.CompleteUntil != 0, rt.CompleteTries != 0:
			return rt, errorf("Route.PlainRequests, Withhold, Restore, CompleteAfter, CompleteUntil and CompleteTries " +
				"are about kept requests, and the route has no KeepRequest")
		}
		return rt, nil
	}
	switch {
	case rt.Name == "":
		return rt, errorf("Route.KeepRequest needs a Route.Name: the records of the route must be found again, " +
			"also by a release whose patterns are others")
	case !rt.PlainRequests && !eng.Seals():
		return rt, errorf("route %q: Route.KeepRequest would put requests into the store in plain; "+
			"give the engine a Sealer (a key ring), or say by Route.PlainRequests that they hold no secret", rt.Name)
	case rt.CompleteAfter < 0, rt.CompleteUntil < 0, rt.CompleteTries < 0:
		return rt, errorf("route %q: CompleteAfter, CompleteUntil or CompleteTries is negative", rt.Name)
	}
	var err error
	if rt.Withhold, err = headerNames("Route.Withhold", rt.Withhold); err != nil {
		return rt, err
	}
	if rt.PlainRequests {
		rt.Withhold = append(rt.Withhold, credentials...)
	}
	return rt, nil
}
