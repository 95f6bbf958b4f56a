package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/leatproject/leat/testserver"
)

// save writes the state to the file of the options, if there is one. The file appears whole, because it is written
// under another name first. Only its owner can read it, because it contains Secrets.
func (o Options) save(server *testserver.Server) error {
	if o.data == "" {
		return nil
	}
	text := server.Dump()
	var err error
	if !strings.EqualFold(filepath.Ext(o.data), ".json") {
		if text, err = yaml.JSONToYAML(text); err != nil {
			return fmt.Errorf("--data %s: %w", o.data, err)
		}
	}
	if err := replaceFile(o.data, text); err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	return nil
}

// checkFolder returns an error if the state could not be written at the end, when it would be lost.
func checkFolder(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		var unnamed *fs.PathError // it has the name of the temporary file
		if errors.As(err, &unnamed) {
			err = unnamed.Err
		}
		return fmt.Errorf("a file cannot be created there: %w", err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func replaceFile(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the other error says more
	}
	return err
}
