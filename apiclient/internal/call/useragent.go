package call

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

const modulePath = "github.com/leatproject/leat"

// defaultUserAgent returns "<program>/<version> (<os>/<arch>) leat/<version>". This is the convention of Kubernetes,
// except that client-go's last part is the commit.
func defaultUserAgent() string {
	program, version, leat := "unknown", "unknown", "unknown"
	if len(os.Args) > 0 {
		program = filepath.Base(os.Args[0])
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		if info.Main.Path == modulePath {
			leat = version
		}
		for _, d := range info.Deps {
			if d.Path == modulePath {
				leat = d.Version
			}
		}
	}
	return token(program) + "/" + token(version) + " (" + runtime.GOOS + "/" + runtime.GOARCH + ") leat/" + token(leat)
}

// token returns a name without the characters that a product token cannot have, so that the header is always valid.
func token(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune(".-_+", r):
			return r
		}
		return -1
	}, s)
	if s == "" {
		return "unknown"
	}
	return s
}
