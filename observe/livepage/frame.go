package livepage

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/sameorigin"
)

// Frame returns the files and the checks of the page around other answers. The script is the file that fills the
// document. Package history shows a recording with it. The error says which of the allowed hosts is invalid.
func Frame(o Options, script string, answers *http.ServeMux) (http.Handler, error) {
	guard, err := sameorigin.New(o.AllowedHosts)
	if err != nil {
		return nil, fmt.Errorf("livepage: Options.AllowedHosts: %w", err)
	}
	p := &Page{o: o, guard: guard}
	serveAssets(answers, script)
	return p.guarded(answers), nil
}

// Render returns an object in JSON, as the page shows it: without managedFields, and of the data and the annotations of
// a Secret only the names, the sizes and the hashes of the values.
func Render(r api.Resource, object api.Object) (json.RawMessage, error) { return render(r, object) }
