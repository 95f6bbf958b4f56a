package exec

import (
	"regexp"
	"strings"
)

// secretive matches the parts of names that mean a secret.
const secretive = `(?:token|secret|passw(?:or)?d|passphrase|passcode|pwd|(?:api|access|account|private|shared|signing|encryption|secret)[-_. ]?key|` +
	`key[-_. ]?data|credential|assertion|signature|jwt|session[-_. ]?id|x-amz-[a-z-]*key)`

// A name is followed by a separator, or it is an option and followed by a blank. Quotes and brackets may stand between.
var (
	named    = regexp.MustCompile(`(?i)[\w.-]*` + secretive + `[\w.-]*[\\"'\]]*\s*(?::=|=>|->|[:=>])[ \t]*`)
	optioned = regexp.MustCompile(`(?i)(?:^|[\s"'\[,(])--?[\w.-]*` + secretive + `[\w-]*["',\s]+`)
	bare     = regexp.MustCompile(`(?i)\b(?:token|secret|password|passphrase|key|credential)s?[ \t]+["'(]?`)
	// linking matches words between such a name and its value.
	linking = regexp.MustCompile(`(?i)^(?:(?:is|was|value|of|the|a|an|my|your)[ \t]+["'(]?)*`)
	// plain matches the words that follow the name of a secret in a sentence. Others may be the secret.
	plain = regexp.MustCompile(`^(?:a[nst]?|access|already|and|are|at|auth(?:entication|orization)|available|be|been|before|empty|but|by|cache[ds]?|can|cannot|` +
		`command|could|did|does|endpoint|errors?|exceeded|exchange|expire[ds]?|expiry|fail(?:s|ed|ure)|fetch(?:ed)?|file|for|found|from|grant|ha[sd]|if|in|` +
		`included|invalid|is|issue[dr]?|lifetime|locked|may|missing|must|names?|not?|of|path|on|or|provider|reads?|refresh(?:ed)?|refused|rejected|requests?|required|` +
		`response|returned|revoked|server|service|should|source|store|than|that|the|there|to|too|type|url|unavailable|until|use[ds]?|using|valid|validation|value|via|` +
		`was|were|when|which|will|with|without|would|you|your)[.:!?]*$`)
	// harmless matches names whose value is not the secret itself.
	harmless = regexp.MustCompile(`(?i)(?:file|path|dir|directory|url|uri|endpoint|type|name|expiry|expires|expiration|expirationtimestamp|expires_?(?:at|in)|providers?)$`)
	// secretOption matches an option that is followed by a secret, in the same argument or in the next.
	secretOption = regexp.MustCompile(`(?i)^-.*` + secretive + `(?:=(.*))?$`)
	passwords    = regexp.MustCompile(`(?i)pass|pwd`)
	plainName    = regexp.MustCompile(`^[a-z]+$`)
	errorCode    = regexp.MustCompile(`^(?:[A-Z][a-z]+){2,}$`)
	prose        = regexp.MustCompile(`^(?:[A-Z]?[a-z']+,? ){2}[a-z']+`)
	cause        = regexp.MustCompile(`^(?:[A-Za-z]?[a-z_'-]+|[A-Z]{2,5}|\d{3})[,.;:]?(?:\s|$)`)
)

// hideNamed hides the values behind names that mean a secret.
func hideNamed(text string) string {
	text = replaceIn(text, named, namedLength)
	text = replaceIn(text, optioned, optionLength)
	return replaceIn(text, bare, bareLength)
}

// replaceIn hides what follows each match, where length finds a value: its beginning and its end behind the match.
func replaceIn(text string, before *regexp.Regexp, length func(text string, from, to int) (skip, n int)) string {
	var b strings.Builder
	last := 0
	for last <= len(text) {
		at := before.FindStringIndex(text[last:])
		if at == nil {
			break
		}
		from, to := last+at[0], last+at[1]
		skip, n := length(text, from, to)
		b.WriteString(text[last:min(to+skip, len(text))])
		last = min(to+skip, len(text))
		if n > 0 && !strings.HasPrefix(text[last:], hidden) {
			b.WriteString(hidden)
			last += n
		}
	}
	return b.String() + text[last:]
}

// namedLength finds the value of a name with a separator, which is text[from:to].
func namedLength(text string, from, to int) (skip, n int) {
	match, rest := text[from:to], text[to:]
	name := strings.TrimRight(match, "\\\"'] \t\n:=>-")
	if harmless.MatchString(name) {
		return 0, 0
	}
	spaced := strings.HasSuffix(match, " ")
	switch {
	case spaced && isPath(text[:from]) && !isOdd(rest):
		return 0, 0 // "open /run/token: no such file"
	case spaced && followsWord(text[:from]) && plainName.MatchString(name) && !passwords.MatchString(name) && cause.MatchString(rest):
		return 0, 0 // "cannot fetch token: invalid_grant"
	case spaced && errorCode.MatchString(name) && prose.MatchString(rest):
		return 0, 0 // "InvalidClientTokenId: The token is invalid"
	case spaced && passwords.MatchString(name) && !strings.ContainsAny(rest[:min(1, len(rest))], "\"'`\\[{("):
		return 0, len(firstLine(rest)) // it may have blanks
	}
	return valueLength(rest)
}

// optionLength finds the value of an option. Another option is not a value.
func optionLength(text string, from, to int) (skip, n int) {
	name := strings.TrimRight(text[from:to], "\"', \t\n")
	if harmless.MatchString(name) || strings.HasPrefix(text[to:], "-") {
		return 0, 0
	}
	return 0, wordLength(text[to:])
}

// bareLength finds a value behind a word without a separator: "token abc is too old", "the token is abc". Any word may
// be a token or a password, so only the words that a sentence has there stay. A word behind "key" or behind a plural is
// more often a name: it must look like a secret.
func bareLength(text string, from, to int) (skip, n int) {
	name := strings.TrimRight(text[from:to], " \t\"'(")
	if strings.HasSuffix(name, "s") || strings.EqualFold(name, "key") || strings.EqualFold(name, "credential") {
		if n = wordLength(text[to:]); isOdd(text[to : to+n]) {
			return 0, n
		}
		return 0, 0
	}
	if isPath(text[:from]) {
		return 0, 0
	}
	skip = len(linking.FindString(text[to:]))
	value := text[to+skip:]
	if n = wordLength(value); plain.MatchString(value[:n]) {
		return 0, 0
	}
	return skip, n
}

// isOdd reports whether the first word of a text has letters and digits in disorder.
func isOdd(text string) bool {
	n := wordLength(text)
	return n >= 6 && transitions(text[:n]) >= 2
}

// isPath reports whether a text ends inside a path, so that the name that follows is that of a file.
func isPath(before string) bool {
	word := before[strings.LastIndexAny(before, " \t\n\"'`")+1:]
	return strings.Contains(word, "/") || strings.Contains(word, `:\`)
}

// followsWord reports whether a text ends with a word and a blank, as in a sentence.
func followsWord(before string) bool {
	n := len(before)
	return n >= 2 && before[n-1] == ' ' && (classOf(before[n-2]) == 'a' || classOf(before[n-2]) == 'A')
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// valueLength finds a value that may be quoted, or in brackets: as much as skip stands before it, and n is its length.
func valueLength(rest string) (skip, n int) {
	if strings.HasPrefix(rest, "|") || strings.HasPrefix(rest, ">") { // a block of YAML: the next line is the value
		skip = len(firstLine(rest))
		next := strings.TrimLeft(rest[skip:], " \t\n")
		return len(rest) - len(next), len(firstLine(next))
	}
	unprefixed := strings.TrimLeft(rest, "bruBRU") // b'...' of Python
	if at := strings.TrimLeft(unprefixed, `\`); at != "" && strings.IndexByte("\"'`", at[0]) >= 0 && len(rest)-len(unprefixed) <= 2 {
		skip = len(rest) - len(at) + 1
		return skip, quotedLength(at[1:], at[0], len(at) < len(unprefixed))
	}
	if rest != "" && strings.IndexByte("[({", rest[0]) >= 0 {
		n = strings.IndexAny(rest, "])}\n")
		if n < 0 {
			n = len(rest)
		}
		return 1, n - 1
	}
	return 0, wordLength(rest)
}

// quotedLength finds the end of a quoted text. Where the quotes are escaped themselves, the first one ends it.
func quotedLength(text string, quote byte, escaped bool) int {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && !escaped:
			i++
		case text[i] == quote:
			for escaped && i > 0 && text[i-1] == '\\' {
				i--
			}
			return i
		case text[i] == '\n':
			return i
		}
	}
	return len(text)
}

// wordLength finds the end of a word.
func wordLength(text string) int {
	if n := strings.IndexAny(text, " \t\n\"'`,;&<>()[]{}"); n >= 0 {
		return n
	}
	return len(text)
}
