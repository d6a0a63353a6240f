package umavezhttp

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"strings"
	"testing"
)

// part writes one part of a form, with CRLF for every line feed of header.
func part(boundary, header, content string) string {
	return "--" + boundary + "\r\n" + strings.ReplaceAll(header, "\n", "\r\n") + "\r\n\r\n" + content + "\r\n"
}

const (
	valorHeader   = `Content-Disposition: form-data; name="valor"`
	arquivoHeader = "Content-Disposition: form-data; name=\"arquivo\"; filename=\"a.pdf\"\nContent-Type: application/pdf"
)

func form(boundary string) string {
	return part(boundary, valorHeader, "100") + part(boundary, arquivoHeader, "%PDF-1.7\r\n\x00") + "--" + boundary + "--\r\n"
}

func canonicalForm(body, boundary string) (string, bool) {
	out, ok := appendMultipart(nil, []byte(body), boundary)
	return string(out), ok
}

func mustForm(t *testing.T, body, boundary string) string {
	t.Helper()
	form, ok := canonicalForm(body, boundary)
	if !ok {
		t.Fatalf("%q has no form", body)
	}
	return form
}

func TestF5_BoundaryIsIgnored(t *testing.T) {
	want := mustForm(t, form("b1"), "b1")
	for _, boundary := range []string{"outra", "----WebKitFormBoundary7MA4YWxkTrZu0gW", strings.Repeat("x", 70), "'()+_,-./:=?", "a b"} {
		if got := mustForm(t, form(boundary), boundary); got != want {
			t.Errorf("with the boundary %q the form is\n%q, else\n%q", boundary, got, want)
		}
	}
	if got := mustForm(t, strings.TrimSuffix(form("b"), "\r\n"), "b"); got != want {
		t.Error("the last line's end counts")
	}
}

func TestF5_WritingOfHeadersIsIgnored(t *testing.T) {
	want := mustForm(t, form("b"), "b")
	other := part("b", "content-disposition:form-data;name=valor", "100") +
		part("b", "CONTENT-TYPE:  application/pdf \ncontent-disposition: Form-Data; filename=\"a.pdf\"; NAME=arquivo", "%PDF-1.7\r\n\x00") + "--b--"
	if got := mustForm(t, other, "b"); got != want {
		t.Errorf("written in another way the form is\n%q, else\n%q", got, want)
	}
}

func TestF5_WhatCounts(t *testing.T) {
	seen := map[string]string{}
	for name, body := range map[string]string{
		"as it is":          form("b"),
		"another value":     strings.Replace(form("b"), "100", "101", 1),
		"another name":      strings.Replace(form("b"), `"valor"`, `"Valor"`, 1),
		"another file name": strings.Replace(form("b"), `a.pdf`, `b.pdf`, 1),
		"no file name":      strings.Replace(form("b"), `; filename="a.pdf"`, ``, 1),
		"another type":      strings.Replace(form("b"), `application/pdf`, `text/plain`, 1),
		"no type":           strings.Replace(form("b"), "\r\nContent-Type: application/pdf", ``, 1),
		"another header":    strings.Replace(form("b"), "Content-Type", "Content-ID: 7\r\nContent-Type", 1),
		"another order":     part("b", arquivoHeader, "%PDF-1.7\r\n\x00") + part("b", valorHeader, "100") + "--b--\r\n",
		"a part less":       part("b", valorHeader, "100") + "--b--\r\n",
		"a part twice":      part("b", valorHeader, "100") + form("b"),
		"no part":           "--b--\r\n",
		"bytes of a file":   strings.Replace(form("b"), "%PDF-1.7\r\n\x00", "%PDF-1.7\r\n\x01", 1),
		"a line end more":   strings.Replace(form("b"), "100\r\n", "100\r\n\r\n", 1),
		"parts run over":    part("b", valorHeader, "") + part("b", arquivoHeader, "100%PDF-1.7\r\n\x00") + "--b--\r\n",
		"another extended":  strings.Replace(form("b"), `filename="a.pdf"`, `filename="a.pdf"; filename*=UTF-8''b.pdf`, 1),
		"and another":       strings.Replace(form("b"), `filename="a.pdf"`, `filename="c.pdf"; filename*=UTF-8''b.pdf`, 1),
		"a backslash":       strings.Replace(form("b"), `a.pdf`, `a\.pdf`, 1),
		"two backslashes":   strings.Replace(form("b"), `a.pdf`, `a\\.pdf`, 1),
	} {
		got := mustForm(t, body, "b")
		if other, ok := seen[got]; ok {
			t.Errorf("%q and %q have one form", name, other)
		}
		seen[got] = name
	}
}

// TestF5_MalformedHasNoForm: where readers disagree about what the parts are.
func TestF5_MalformedHasNoForm(t *testing.T) {
	for name, body := range map[string]string{
		"empty":                     "",
		"not a form":                "100",
		"a preamble":                "hello\r\n" + form("b"),
		"an empty line before":      "\r\n" + form("b"),
		"an epilogue":               form("b") + "bye",
		"bare line feeds":           strings.ReplaceAll(form("b"), "\r\n", "\n"),
		"no end":                    strings.TrimSuffix(form("b"), "--b--\r\n"),
		"no end of the last line":   strings.TrimSuffix(form("b"), "--\r\n"),
		"another boundary":          form("c"),
		"what begins like it":       strings.Replace(form("b"), "100", "1\r\n--bc\r\n", 1),
		"space behind the boundary": strings.Replace(form("b"), "--b\r\n", "--b \r\n", 1),
		"no end of headers":         "--b\r\n" + valorHeader + "\r\n--b--\r\n",
		"a folded header":           part("b", "Content-Disposition: form-data;\n name=a", "x") + "--b--",
		"a header without colon":    part("b", "Content-Disposition", "x") + "--b--",
		"a space before the colon":  part("b", valorHeader+"\nContent-Type : a/b", "x") + "--b--",
		"a bare CR in a header":     part("b", valorHeader+"\rX: y", "x") + "--b--",
		"a header twice":            part("b", valorHeader+"\ncontent-disposition: form-data; name=b", "x") + "--b--",
		"a name twice":              part("b", valorHeader+"; name=b", "x") + "--b--",
		"a malformed disposition":   part("b", `Content-Disposition: form-data; name="`, "x") + "--b--",
		"too many headers":          part("b", strings.Repeat("X: y\n", maxMIMEHeaders)+"X: y", "x") + "--b--",
		"an empty part cut short":   "--b\r\n" + valorHeader + "\r\n\r\n--b--\r\n",
		"one before another part":   "--b\r\n" + valorHeader + "\r\n\r\n" + form("b"),
	} {
		if got, ok := canonicalForm(body, "b"); ok {
			t.Errorf("%s: %q has the form %q", name, body, got)
		}
	}
	for _, boundary := range []string{"", "a ", "é", "a\"", strings.Repeat("x", 71), "a\r\n"} {
		if _, ok := canonicalForm(form(boundary), boundary); ok {
			t.Errorf("%q passes for a boundary", boundary)
		}
	}
}

// FuzzMultipart: what has a form has the parts that mime/multipart finds in it;
// another boundary leaves the form as it is, and a change of content changes it.
func FuzzMultipart(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte, boundary, other string) {
		form, ok := canonicalForm(string(body), boundary)
		if !ok {
			return
		}
		delimiter := "\r\n--" + boundary
		parts := bytes.Count(append([]byte("\r\n"), body...), []byte(delimiter)) - 1
		agree(t, body, boundary, parts)
		if isBoundary(other) && !bytes.Contains(body, []byte("--"+other)) {
			renamed := strings.ReplaceAll("\r\n"+string(body), delimiter, "\r\n--"+other)[2:]
			if got, ok := canonicalForm(renamed, other); !ok || got != form {
				t.Fatalf("%q has the form\n%q, with the boundary %q\n%q, %v", body, form, other, got, ok)
			}
		}
		if parts == 0 {
			return
		}
		end := bytes.LastIndex(body, []byte(delimiter))
		for _, added := range []string{"x", "\r\n", delimiter + "\r\n\r\n"} {
			changed := string(body[:end]) + added + string(body[end:])
			if got, ok := canonicalForm(changed, boundary); ok && got == form {
				t.Fatalf("%q and %q have one form", body, changed)
			}
		}
		first := len(delimiter) // behind the first boundary's line
		changed := string(body[:first]) + "X-Fuzz: y\r\n" + string(body[first:])
		if got, ok := canonicalForm(changed, boundary); ok && got == form {
			t.Fatalf("%q and %q have one form", body, changed)
		}
	})
}

// agree holds what we take for the parts against mime/multipart, unless it does
// not read the body at all.
func agree(t *testing.T, body []byte, boundary string, parts int) {
	r := multipart.NewReader(bytes.NewReader(body), boundary)
	for i := 0; ; i++ {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) && i != parts {
			t.Fatalf("%q: mime/multipart finds %d parts, we %d", body, i, parts)
		}
		if err != nil {
			return
		}
		content, err := io.ReadAll(p)
		if err != nil {
			t.Fatalf("%q: part %d of %d: %v", body, i, parts, err)
		}
		if !bytes.Contains(body, append(content, "\r\n--"+boundary...)) {
			t.Fatalf("%q: mime/multipart finds the content %q", body, content)
		}
	}
}
