package wire

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// continueToken says where the next page of a list starts, and in which state. It has the form of kube-apiserver's
// tokens, although clients must not read it.
type continueToken struct {
	APIVersion string `json:"v"`
	Version    int64  `json:"rv"` // negative means the present state
	Start      string `json:"start"`
}

const tokenVersion = "meta.k8s.io/v1"

// EncodeToken returns a token for the page that starts at a path, in the state of a version.
func EncodeToken(version int64, start string) string {
	body, err := json.Marshal(continueToken{APIVersion: tokenVersion, Version: version, Start: start})
	if err != nil {
		panic(fmt.Sprintf("testserver: encode a continue token: %v", err))
	}
	return base64.RawURLEncoding.EncodeToString(body)
}

// DecodeToken parses a token. A malformed one is a 400.
func DecodeToken(text string) (continueToken, error) {
	var t continueToken
	body, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(body, &t)
	}
	if err == nil {
		err = t.check()
	}
	if err != nil {
		return t, apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: continue key is not valid: %v", err))
	}
	return t, nil
}

// check returns an error in the words of kube-apiserver.
func (t continueToken) check() error {
	switch {
	case t.APIVersion != tokenVersion:
		return fmt.Errorf("server does not recognize this encoded version %s", t.APIVersion)
	case t.Version == 0:
		return fmt.Errorf("incorrect encoded start resourceVersion (version %s)", tokenVersion)
	case t.Start == "":
		return fmt.Errorf("encoded start key empty (version %s)", tokenVersion)
	case path.Clean("/"+t.Start) != "/"+strings.TrimSuffix(t.Start, "/"):
		return errors.New(t.Start)
	}
	return nil
}

// TokenExpired returns the 410 for a token whose state is forgotten. It contains a token that continues at the same
// place in the present state.
func TokenExpired(start string) error {
	err := Expired("The provided continue parameter is too old to display a consistent list result. You can start a " +
		"new list without the continue parameter, or use the continue token in this response to retrieve the " +
		"remainder of the results, which is then inconsistent.")
	err.ErrStatus.ListMeta.Continue = EncodeToken(-1, start)
	return err
}
