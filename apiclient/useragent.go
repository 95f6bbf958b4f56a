package apiclient

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

const modulePath = "github.com/leatproject/leat"

// defaultUserAgent is "<program>/<version> (<os>/<arch>) leat/<version>", the convention of Kubernetes with leat where
// client-go puts the commit.
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

// token keeps of a name what may stand in a product token, so that no name of a program can break the header.
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
