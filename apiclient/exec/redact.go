package exec

import (
	"encoding/base64"
	"regexp"
	"strings"
)

// hidden replaces a secret.
const hidden = "(not shown)"

// redact removes secrets from the standard error of a plugin. The rule is conservative. It replaces
//
//   - the known secrets, in every usual encoding (hideKnown),
//   - private keys, JSON web tokens (RFC 7519), the user of a URL, and the text behind Authorization, Cookie, Bearer,
//     Basic and curl's -u,
//   - the value behind a name that means a secret, such as token, password or AWS_SECRET_ACCESS_KEY (hideNamed),
//   - every long unbroken text that looks random, except in the path of a file.
//
// Price: identifiers of requests are hidden, and so is a word behind a name such as "token", unless it is one that
// sentences have there. The text stays in the error, because it often says how to log in; a log line would show the
// same secrets. Prose, error codes and
// paths stay.
func redact(text string, secrets []string) string {
	text = hideKnown(text, secrets)
	for _, shape := range shapes {
		text = shape.ReplaceAllString(text, "${1}"+hidden+"${2}")
	}
	text = hideHeaders(text)
	text = hideNamed(text)
	text = schemes.ReplaceAllStringFunc(text, hideScheme)
	return hideRandom(text)
}

// shapes are secrets with a form of their own. The groups are kept.
var shapes = []*regexp.Regexp{
	regexp.MustCompile(`(?s)()-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)()`),
	regexp.MustCompile(`(?s)^().*-----END [A-Z0-9 ]*PRIVATE KEY-----()`), // its beginning was cut off
	regexp.MustCompile(`()\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)*()`),
	regexp.MustCompile(`(://)[^\s/"'<>]*(@)`),
	regexp.MustCompile(`(\b[\w.+-]+:)[^\s@/:"'<>]+(@[\w-]+\.)`),
	regexp.MustCompile(`(?i)([?&](?:code|key|sig|auth|pass|pw|ticket|session)=)[^\s&"'<>#]+()`),
	regexp.MustCompile(`((?:^|[\s"'\[])(?:-u|-U|--user|--proxy-user)[\s=,"']*[^\s:"',]+:)[^\s"',\]]+()`),
	regexp.MustCompile(`((?:^|[\s"'\[])(?:--user|--proxy-user|-u|-U)[\s=]+["'][^:"']+:)[^"']+()`),
	regexp.MustCompile(`((?:^|\s)-p[\s=]+)[^\s/.~-][^\s]*()`),
}

// header matches the HTTP headers whose whole value is secret, up to the value. The scheme is kept.
var header = regexp.MustCompile(`(?i)\b(?:(?:proxy-)?authorization|(?:set-)?cookie2?)[\\"'\]]*\s*(?::|=>|=)[\\"'\[\s]*(?:(?:basic|bearer|digest|negotiate|ntlm|token|apikey|aws4-hmac-sha256)\s+)?`)

// hideHeaders hides the value of such a header, up to the quote or the bracket that ends it, or else to the end of the
// line.
func hideHeaders(text string) string {
	return replaceIn(text, header, func(text string, from, to int) (skip, n int) {
		rest, match := firstLine(text[to:]), text[from:to]
		opening := match[strings.IndexAny(match, ":="):]
		if from > 0 && !strings.ContainsAny(opening, openings) {
			opening = text[from-1 : from]
		}
		if i := strings.IndexAny(opening, openings); i >= 0 {
			if n = strings.IndexByte(rest, closings[strings.IndexByte(openings, opening[i])]); n >= 0 {
				return 0, len(strings.TrimRight(rest[:n], `\`))
			}
		}
		return 0, len(rest)
	})
}

const (
	openings = "\"'`[{("
	closings = "\"'`]})"
)

// schemes matches an authentication scheme and a word.
var schemes = regexp.MustCompile(`(?i)\b(?:bearer|basic|negotiate)\s+[\w.~+/=-]{8,}`)

// schemeWords follow the name of a scheme in prose.
var schemeWords = regexp.MustCompile(`(?i)^(?:tokens?|auth(?:entication|orization)?|credentials?|realm=?|scheme)$`)

// hideScheme hides the word behind a scheme. Behind Basic it must be base64 with a colon in it, or look random.
func hideScheme(match string) string {
	i := strings.IndexAny(match, " \t\n") + 1
	scheme, word := match[:i], match[i:]
	if schemeWords.MatchString(strings.TrimSpace(word)) {
		return match
	}
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(word))
	isPair := err == nil && strings.Contains(string(decoded), ":")
	if strings.EqualFold(strings.TrimSpace(scheme), "basic") && !isPair && transitions(word) < 2 {
		return match
	}
	return scheme + hidden
}

const (
	shortestRandom = 20   // characters of a text that is hidden because it looks random
	randomness     = 0.19 // transitions per character; random text has 0.25 to 0.5, an identifier 0.1
)

var (
	unbroken = regexp.MustCompile(`[\w+/%~-]{20,}`)
	// plainSegments matches the beginning of a path of plain words. The rest of the text may still be random.
	plainSegments = regexp.MustCompile(`^(?:[a-z]*/)+`)
	// filePath matches the beginning of a path. A random text that begins with a slash rarely continues with a plain
	// word.
	filePath = regexp.MustCompile(`^(?:file://)?(?:/|\.{1,2}/|~/|[A-Za-z]:[\\/]+|\\\\)[A-Za-z]?[a-z]*(?:[./\\]|$)`)
)

// hideRandom hides every unbroken text that looks random, except in the path of a file.
func hideRandom(text string) string {
	var b strings.Builder
	last := 0
	for _, at := range unbroken.FindAllStringIndex(text, -1) {
		word := text[strings.LastIndexAny(text[:at[0]], " \t\n\"'`=(<[{,")+1:]
		if !isRandom(text[at[0]:at[1]]) || filePath.MatchString(word) {
			continue
		}
		b.WriteString(text[last:at[0]] + hidden)
		last = at[1]
	}
	return b.String() + text[last:]
}

func isRandom(s string) bool {
	s = strings.TrimPrefix(s, plainSegments.FindString(s))
	return len(s) >= shortestRandom && float64(transitions(s)) >= randomness*float64(len(s)-1)
}

// transitions counts the places where a digit meets a letter, or an upper-case letter follows a lower-case one. Words
// and names have few.
func transitions(s string) int {
	n := 0
	for i := 1; i < len(s); i++ {
		a, b := classOf(s[i-1]), classOf(s[i])
		if a != 0 && b != 0 && a != b && (a != 'A' || b != 'a') {
			n++
		}
	}
	return n
}

// classOf returns 'a', 'A' or '0' for the kinds of letters and digits, and 0 for anything else.
func classOf(c byte) byte {
	switch {
	case c >= 'a' && c <= 'z':
		return 'a'
	case c >= 'A' && c <= 'Z':
		return 'A'
	case c >= '0' && c <= '9':
		return '0'
	}
	return 0
}
