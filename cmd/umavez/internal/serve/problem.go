package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"text/template"

	"github.com/umavez/umavez/umavezhttp"
)

// ProblemSettings replace the problem document, for an API with an error schema
// of its own. Only the file can spell them.
type ProblemSettings struct {
	// Type is the media type of what the template makes.
	Type string `yaml:"type"`
	// Template is a Go text/template over umavezhttp.Problem. The function json
	// quotes a value: {"code": {{json .Code}}, "detail": {{json .Detail}}}.
	Template string `yaml:"template"`
}

// problemWriter is what umavezhttp calls to write a refusal.
type problemWriter func(w http.ResponseWriter, r *http.Request, p umavezhttp.Problem)

// problemTemplate checks the template by making a document with it: a fault in
// it must not wait for the first refusal.
func (s Settings) problemTemplate(c *Config, p *problems) {
	if s.Problem == nil {
		return
	}
	media, _, err := mime.ParseMediaType(s.Problem.Type)
	if err != nil || !strings.Contains(media, "/") {
		p.addf("problem: type %q: must be a media type such as application/json", s.Problem.Type)
		return
	}
	t, err := template.New("problem").Option("missingkey=error").Funcs(template.FuncMap{"json": quoted}).Parse(s.Problem.Template)
	if err != nil {
		p.addf("problem: %w", err)
		return
	}
	var made bytes.Buffer
	err = t.Execute(&made, umavezhttp.Problem{Title: `a "title"`, Status: 409, Code: "in-progress", Detail: "a\ndetail"})
	switch {
	case err != nil:
		p.addf("problem: %w", err)
	case made.Len() == 0:
		p.addf("problem: template: makes nothing")
	case isJSON(media) && !json.Valid(made.Bytes()):
		p.addf("problem: template: makes what is not JSON, though its type is %s: %s", media, made.String())
	}
	c.Problem = templated(s.Problem.Type, t)
}

func isJSON(media string) bool {
	return strings.HasSuffix(media, "/json") || strings.HasSuffix(media, "+json")
}

// quoted spells a value as JSON.
func quoted(v any) (string, error) {
	text, err := json.Marshal(v)
	return string(text), err
}

func templated(media string, t *template.Template) problemWriter {
	return func(w http.ResponseWriter, _ *http.Request, p umavezhttp.Problem) {
		var document bytes.Buffer
		w.Header().Set("Content-Type", media)
		if err := t.Execute(&document, p); err != nil {
			// It made a document at the start; the client still gets the code.
			document.Reset()
			fmt.Fprintln(&document, p.Code)
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		}
		w.Header().Set("Content-Language", p.Language)
		w.WriteHeader(p.Status)
		_, _ = document.WriteTo(w)
	}
}
