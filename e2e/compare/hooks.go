package compare

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
)

// Hooks is a server of webhooks that both servers call. The path says what a webhook does:
//
//	/append/TEXT     adds a text to the annotation trace; TEXT is also "told"
//	/tell            refuses the request and says what it is about
//	/warn/TEXT       allows the request with a warning
//	/deny/CODE/TEXT  refuses the request, with a warning
//	/label/VALUE     sets the label hook to a value, without a check of its form
//	/patch/PATCH     changes the object by a JSON patch
//	/fail/CODE       answers with an HTTP status
//	/convert         converts objects: v2 has the field "b" where v1 has "a"
//	/convert/fail    says that it cannot convert
//	/convert/rename  converts and changes the name
type Hooks struct{ server *httptest.Server }

// NewHooks starts the server.
func NewHooks() *Hooks {
	h := &Hooks{server: httptest.NewUnstartedServer(http.HandlerFunc(serveHook))}
	h.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.server.StartTLS()
	return h
}

// Close ends the server.
func (h *Hooks) Close() { h.server.Close() }

// expand replaces $hooks by the URL of the server, and $ca by its certificate.
func (h *Hooks) expand(text string) string {
	if h == nil || !strings.Contains(text, "$hooks") {
		return text
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.server.Certificate().Raw})
	return strings.NewReplacer("$hooks", h.server.URL, "$ca", base64.StdEncoding.EncodeToString(ca)).Replace(text)
}

// tree is JSON.
type tree = map[string]any

func serveHook(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Request    map[string]any `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	name, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	var answer tree
	switch name {
	case "fail":
		code, _ := strconv.Atoi(rest)
		http.Error(w, "the webhook fails", code)
		return
	case "convert":
		answer = convert(review.Request, rest)
	default:
		answer = admit(review.Request, name, rest)
	}
	answer["uid"] = review.Request["uid"]
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(tree{"apiVersion": review.APIVersion, "kind": review.Kind, "response": answer})
}

// admit answers an admission review.
func admit(request tree, name, rest string) tree {
	switch name {
	case "append":
		return patched(appended(request, rest))
	case "tell":
		return tree{"allowed": false, "status": tree{"message": told(request)}}
	case "warn":
		return tree{"allowed": true, "warnings": []string{rest}}
	case "deny":
		code, text, _ := strings.Cut(rest, "/")
		number, _ := strconv.Atoi(code)
		return tree{"allowed": false, "warnings": []string{"about " + text}, "status": tree{"message": text, "code": number, "reason": "Gone"}}
	case "label":
		return patched([]tree{{"op": "add", "path": "/metadata/labels", "value": tree{"hook": rest}}})
	case "patch":
		return tree{"allowed": true, "patchType": "JSONPatch", "patch": []byte(rest)}
	}
	return tree{"allowed": true}
}

func patched(patch []tree) tree {
	encoded, err := json.Marshal(patch)
	if err != nil {
		return tree{"allowed": false, "status": tree{"message": err.Error()}}
	}
	return tree{"allowed": true, "patchType": "JSONPatch", "patch": encoded}
}

// appended returns the patch that adds a text to the annotation trace.
func appended(request tree, text string) []tree {
	if text == "told" {
		text = told(request)
	}
	object, _ := request["object"].(tree)
	meta, _ := object["metadata"].(tree)
	annotations, ok := meta["annotations"].(tree)
	if !ok {
		return []tree{{"op": "add", "path": "/metadata/annotations", "value": tree{"trace": text}}}
	}
	if before, ok := annotations["trace"].(string); ok {
		text = before + " " + text
	}
	return []tree{{"op": "add", "path": "/metadata/annotations/trace", "value": text}}
}

// told says what a request is about.
func told(request tree) string {
	parts := tree{}
	for name, value := range request {
		switch name {
		case "uid":
		case "object", "oldObject":
			o, ok := value.(tree)
			parts[name] = "none"
			if ok {
				parts[name] = fmt.Sprint(o["kind"], " ", o["apiVersion"])
			}
		default:
			parts[name] = value
		}
	}
	encoded, err := json.Marshal(parts)
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}

// convert answers a conversion review.
func convert(request tree, how string) tree {
	if how == "fail" {
		return tree{"result": tree{"status": "Failure", "message": "the webhook cannot convert"}}
	}
	version := fmt.Sprint(request["desiredAPIVersion"])
	to := "a"
	if strings.HasSuffix(version, "/v2") {
		to = "b"
	}
	objects, _ := request["objects"].([]any)
	for _, o := range objects {
		o, _ := o.(tree)
		o["apiVersion"] = version
		spec, _ := o["spec"].(tree)
		for _, from := range []string{"a", "b"} {
			if value, ok := spec[from]; ok {
				delete(spec, from)
				spec[to] = value
			}
		}
		if meta, ok := o["metadata"].(tree); ok && how == "rename" {
			meta["name"] = "renamed"
		}
	}
	return tree{"result": tree{"status": "Success"}, "convertedObjects": objects}
}
