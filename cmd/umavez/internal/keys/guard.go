package keys

import (
	"log/slog"
	"net/http"
)

// guard lets nobody in who does not show the token, and no page of another site.
func guard(token Token, log *slog.Logger, in http.Handler) http.Handler {
	foreign := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !token.shownBy(r) {
			log.Warn("admin: keys were asked for without the right token", "path", r.URL.Path, "from", r.RemoteAddr)
			w.Header().Set("WWW-Authenticate", `Bearer realm="umavez keys"`)
			text := "this needs the token of serve's --admin-token, as Authorization: Bearer TOKEN"
			if bearer(r) != "" {
				text = "this is not serve's token: show the one in the file of its --admin-token"
			}
			writeJSON(w, http.StatusUnauthorized, &Fault{Code: CodeClosed, Text: text})
			return
		}
		if err := foreign.Check(r); err != nil {
			writeFault(w, &Fault{Code: CodeClosed, Text: "this does not answer pages of other sites"})
			return
		}
		in.ServeHTTP(w, r)
	})
}

// Closed is what stands at /keys where no token is set.
func Closed() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusNotFound, &Fault{
			Code: CodeClosed,
			Text: "this serve does not show its keys: start it with --admin-token FILE, or use --store beside it",
		})
	})
}
