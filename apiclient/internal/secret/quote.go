package secret

import (
	"fmt"
	"mime"
	"strings"
	"unicode"

	"github.com/leatproject/leat/internal/quote"
)

// maxQuote limits what Quote returns, in bytes.
const maxQuote = 256

// Quote returns the beginning of an answer for an error: one line without credentials and control characters. It
// returns only the title of an HTML page, and nothing of an object.
func (s *Sent) Quote(contentType string, body []byte) string {
	body = s.CleanBody(body)
	if quote.IsObject(body) {
		return "an object of Kubernetes, which is not shown"
	}
	text := string(body)
	media, _, _ := mime.ParseMediaType(contentType)
	if media == "text/html" || strings.HasPrefix(strings.ToLower(strings.TrimSpace(text)), "<!doctype html") {
		text = "a page of HTML" + title(text)
	}
	fields := strings.FieldsFunc(strings.ToValidUTF8(text, "�"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	})
	text = strings.Join(fields, " ")
	return quote.Short(text, maxQuote)
}

func title(page string) string {
	lower := strings.ToLower(page)
	if len(lower) != len(page) { // a letter whose two cases differ in length would move the indexes
		return ""
	}
	start := strings.Index(lower, "<title>")
	end := strings.Index(lower, "</title>")
	if start < 0 || end < start {
		return ""
	}
	return fmt.Sprintf(" titled %q", strings.TrimSpace(page[start+len("<title>"):end]))
}
