package keys

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// width is the most columns that text for people has: half of a wide screen.
const width = 100

// tableLine is state, reason, age, since, tries, policy and route. The ID, which
// is 81 columns wide at the least, stands on a line of its own.
const tableLine = "%-8s %-13s %6s %6s %5s %-10s %s\n"

// TableHead writes the head of the table.
func TableHead(w io.Writer) {
	fmt.Fprintf(w, tableLine, "STATE", "REASON", "AGE", "SINCE", "TRIES", "POLICY", "ROUTE")
}

// TableRow writes a key as two lines of the table, or three where the service
// keeps names.
func TableRow(w io.Writer, k *Key) {
	state := k.State
	if k.Contradicted {
		state += "!"
	}
	fmt.Fprintf(w, tableLine, state, clip(k.Reason, 13), short(duration(k.Age)), short(duration(k.Since)),
		strconv.Itoa(k.Tries), k.Policy, clip(k.Route, width-55))
	if k.Label != "" {
		fmt.Fprintf(w, "  %s\n", clip(inWords(k.Label), width-2))
	}
	fmt.Fprintf(w, "  %s\n", k.ID)
}

// Text says where a change has led, and by which quiet time it went: a command
// that works on the store has to be told of serve's max-run.
func (c *Changed) Text(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s: %s → %s\n", c.ID, withReason(c.Before, c.BeforeReason), withReason(c.After, c.AfterReason))
	if err == nil && c.Quiet > 0 {
		_, err = fmt.Fprintf(w, "  went by a quiet time of %s since the loss\n", short(duration(c.Quiet)))
	}
	return err
}

// Text writes all of a key for people.
func (s *Shown) Text(to io.Writer) error {
	w := bufio.NewWriter(to)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%-12s %s\n", name, plain(value))
		}
	}
	line("id", s.ID)
	state := s.State
	if s.State != "vacant" {
		state += fmt.Sprintf(", for %s; first claimed %s ago", short(duration(s.Since)), short(duration(s.Age)))
	}
	line("state", state)
	line("reason", s.Reason)
	line("namespace", s.Namespace)
	line("scope", s.Scope)
	line("label", s.Label)
	line("route", s.Route)
	if s.State != "vacant" {
		line("policy", s.Policy)
		line("tries", strconv.Itoa(s.Tries))
	}
	if s.Lease > 0 {
		line("lease", "another "+short(duration(s.Lease)))
	}
	if s.Held > 0 {
		line("held", "by a reconciler, for another "+short(duration(s.Held))+": it is asking, or pauses before it asks again")
	}
	if s.Retain > 0 {
		line("retention", "another "+short(duration(s.Retain)))
	}
	line("last word", s.keptText(s.LastStatus, s.LastBytes))
	line("answer", s.answerText())
	line("steps", strings.Join(s.Steps, ", "))
	if s.Request {
		line("request", "kept")
	}
	line("unreadable", s.Unreadable)
	if s.Contradicted {
		line("contradicted", "yes: see the trail, and find out which of the two is true")
	}
	if s.Why != "" {
		fmt.Fprintf(w, "\nwhy\n%s", wrap(s.Why, "  "))
	}
	if s.WhatToDo != "" {
		fmt.Fprintf(w, "\nwhat to do\n%s", wrap(s.WhatToDo, "  "))
	}
	s.trailText(w)
	return w.Flush()
}

func (s *Shown) trailText(w io.Writer) {
	if len(s.Trail) == 0 {
		return
	}
	fmt.Fprintf(w, "\ntrail\n")
	for _, e := range s.Trail {
		fmt.Fprintf(w, "  %s (%s ago)  %s by %s\n", e.At, short(duration(e.Ago)), e.Action, plain(e.Who))
		fmt.Fprintf(w, "    %s → %s, attempt %d\n", withReason(e.Before, e.BeforeReason), withReason(e.After, e.AfterReason), e.Fence)
		fmt.Fprint(w, wrap(e.Why, "    "))
	}
}

func withReason(state, reason string) string {
	if reason == "" {
		return state
	}
	return fmt.Sprintf("%s (%s)", state, plain(reason))
}

// keptText says what is kept of an answer.
func (s *Shown) keptText(status, size int) string {
	switch {
	case size == 0:
		return ""
	case status != 0:
		return fmt.Sprintf("status %d", status)
	case s.Sealed:
		return fmt.Sprintf("%d bytes, sealed; give --keyring to see its status", size)
	}
	return fmt.Sprintf("%d bytes, and no HTTP answer", size)
}

func (s *Shown) answerText() string {
	text := s.keptText(s.AnswerStatus, s.AnswerBytes)
	if text != "" && s.Settled {
		text = "given by settling: " + text
	}
	return text
}

// short spells a duration in its two largest units at most: 12s, 3m, 2h10m, 5d.
func short(d time.Duration) string {
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + "s"
	case d < time.Hour:
		return pair(d, time.Minute, "m", time.Second, "s")
	case d < 24*time.Hour:
		return pair(d, time.Hour, "h", time.Minute, "m")
	case d < 100*24*time.Hour:
		return pair(d, 24*time.Hour, "d", time.Hour, "h")
	}
	return strconv.Itoa(int(d/(24*time.Hour))) + "d"
}

func pair(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	text := strconv.Itoa(int(d/large)) + largeName
	if rest := d % large / small; rest > 0 {
		text += strconv.Itoa(int(rest)) + smallName
	}
	return text
}

// plain keeps what others wrote (clients' names, reasons) from steering the
// terminal that it is shown on.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsGraphic(r) {
			return '·'
		}
		return r
	}, text)
}

// clip cuts a text to a number of columns, and shows that it did.
func clip(text string, columns int) string {
	text = plain(text)
	if utf8.RuneCountInString(text) <= columns {
		return text
	}
	runes := []rune(text)
	return string(runes[:columns-1]) + "…"
}

// wrap breaks a text into lines, each with the indent in front. What has no
// space in it is not broken: it is to be copied.
func wrap(text, indent string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		word = plain(word)
		n := utf8.RuneCountInString(word)
		switch {
		case column == 0:
			b.WriteString(indent)
			column = len(indent)
		case column+1+n > width:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += n
	}
	if column > 0 {
		b.WriteString("\n")
	}
	return b.String()
}
