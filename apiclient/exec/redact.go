package exec

import (
	"regexp"
	"strings"
)

// hidden stands for what is not quoted.
const hidden = "(not shown)"

// shortestSecret spares words such as "no" and "1", which say nothing, and without which a message says nothing either.
const shortestSecret = 4

// secretive is how options and fields are called that hold secrets.
const secretive = `(?:token|secret|password|passwd|api[-_]?key|KeyData)`

// credentialForms are what credentials look like, for a plugin that quotes its own answer, or those of whom it asked:
// members of JSON, whose quotes may be escaped, parameters, headers, JSON web tokens (RFC 7519) and private keys. What
// stands before the first group's end is kept.
var credentialForms = []*regexp.Regexp{
	regexp.MustCompile(`(?s)()-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`),
	regexp.MustCompile(`(?i)(` + secretive + `\\*"\s*:\s*\\*")(?:[^"\\]|\\[^"\\])+`),
	regexp.MustCompile(`(?i)(` + secretive + `=)[^\s&"']+`),
	regexp.MustCompile(`(?i)(\bbearer )[\w.~+/=-]{8,}`),
	regexp.MustCompile(`()\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?`),
}

// redact removes from what a plugin complained of the secrets that are known, and what looks like credentials.
func redact(text string, secrets []string) string {
	for _, s := range secrets {
		if len(s) >= shortestSecret {
			text = strings.ReplaceAll(text, s, hidden)
		}
	}
	for _, form := range credentialForms {
		text = form.ReplaceAllString(text, "${1}"+hidden)
	}
	return text
}

// secretOption matches an option that is followed by a secret, in the same argument or in the next.
var secretOption = regexp.MustCompile(`(?i)^-.*` + secretive + `(?:=(.*))?$`)

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
