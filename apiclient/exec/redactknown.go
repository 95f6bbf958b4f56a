package exec

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	// shortestSecret is the length of the shortest secret that is hidden. Words such as "no" and "1" are kept, because
	// a message needs them.
	shortestSecret = 4
	// shortestInherited is the same for variables that the plugin inherits.
	shortestInherited = 8
	// shortestPart is the shortest part of a secret that is hidden: its beginning, if the end was cut off, or one of
	// its lines.
	shortestPart = 8
)

// hideKnown hides secrets that are known, as they are and as a shell, a URL, JSON, HTML, base64 and hexadecimal digits
// write them. A secret of several lines is also hidden line by line, and a long one also if its end was cut off.
func hideKnown(text string, secrets []string) string {
	var all []string
	for _, s := range secrets {
		all = append(all, s)
		if lines := strings.Split(s, "\n"); len(lines) > 1 {
			all = append(all, slices.DeleteFunc(lines, func(line string) bool { return len(line) < shortestPart })...)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) }) // or the longer one keeps its end
	for _, s := range all {
		if len(s) < shortestSecret {
			continue
		}
		for _, form := range formsOf(s) {
			text = strings.ReplaceAll(text, form, hidden)
		}
		text = hideBase64(text, s)
		text = hideBeginnings(text, s)
	}
	return text
}

// formsOf returns a secret in each encoding that keeps it recognisable.
func formsOf(s string) []string {
	quoted, _ := json.Marshal(s) // a string can be marshalled
	goQuoted := strconv.Quote(s)
	return []string{
		s, html.EscapeString(s), url.QueryEscape(s), url.PathEscape(s), url.UserPassword("", s).String()[1:],
		string(quoted[1 : len(quoted)-1]), goQuoted[1 : len(goQuoted)-1],
		hex.EncodeToString([]byte(s)), strings.ToUpper(hex.EncodeToString([]byte(s))),
	}
}

// hideBase64 hides each text in base64 that has the secret in it, wherever the secret begins: what stands before it
// shifts it by one byte or two.
func hideBase64(text, secret string) string {
	for shift, cut := range []int{0, 2, 3} {
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			core := encoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + secret))[cut:]
			if (shift+len(secret))%3 != 0 {
				core = core[:len(core)-1] // which has bits of what follows
			}
			if len(core) >= shortestSecret && strings.Contains(text, core) {
				around := regexp.MustCompile(`[\w+/-]*` + regexp.QuoteMeta(core) + `[\w+/-]*={0,2}`)
				text = around.ReplaceAllString(text, hidden)
			}
		}
	}
	return text
}

// hideBeginnings hides what is left of a secret whose end was cut off.
func hideBeginnings(text, secret string) string {
	if len(secret) < 2*shortestPart {
		return text
	}
	for i := 0; ; {
		at := strings.Index(text[i:], secret[:shortestPart])
		if at < 0 {
			return text
		}
		at += i
		n := shortestPart
		for n < len(secret) && at+n < len(text) && text[at+n] == secret[n] {
			n++
		}
		text = text[:at] + hidden + text[at+n:]
		i = at + len(hidden)
	}
}

// secretsOf finds the arguments that are secrets by the names of their options.
func secretsOf(args []string) []string {
	var secrets []string
	for i, arg := range args {
		m := secretOption.FindStringSubmatch(arg)
		switch {
		case m == nil:
		case m[1] != "":
			secrets = append(secrets, m[1])
		case i+1 < len(args):
			secrets = append(secrets, args[i+1])
		}
	}
	return secrets
}

// inheritedSecrets finds the variables of an environment that are secrets by their names.
func inheritedSecrets(environment []string) []string {
	var secrets []string
	for _, v := range environment {
		name, value, _ := strings.Cut(v, "=")
		if len(value) >= shortestInherited && secretName.MatchString(name) && !harmless.MatchString(name) {
			secrets = append(secrets, value)
		}
	}
	return secrets
}

var secretName = regexp.MustCompile(`(?i)` + secretive)
