package referenced_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
)

// foreign is a test server in another process, because a server in this process would have the values of all Secrets in
// its memory. Each Secret has a marker and its number as a value, which this process can find in its own memory. The
// value is in stringData, so that it has the same form in an answer and in a decoded object.
type foreign struct {
	testing.TB
	URL    string
	hidden []byte // the marker, hidden from the search
	in     io.Writer
	out    *bufio.Reader
}

// foreignSize is the environment variable that makes a process a server.
const foreignSize = "LEAT_TEST_FOREIGN_SECRETS"

// digits is the length of the number that follows the marker.
const digits = 6

func TestMain(m *testing.M) {
	if n, err := strconv.Atoi(os.Getenv(foreignSize)); err == nil {
		if err := serveForeign(n); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

func foreignKey(n int) api.Key { return key(fmt.Sprintf("secret-%0*d", digits, n)) }

// hide changes each byte, and changes it back.
func hide(b []byte) []byte {
	for i := range b {
		b[i] ^= 0x5a
	}
	return b
}

// serveForeign serves Secrets until the standard input ends. For each line there, which is a number, it changes that
// many of them, and prints the version.
func serveForeign(n int) error {
	server := testserver.New(testserver.Options{RequestLog: -1})
	marker := rand.Text()[:24]
	data := func(i, generation int) map[string]any {
		return map[string]any{"password": fmt.Sprintf("%s%0*d%0*d", marker, digits, i, 500, generation)}
	}
	for i := range n {
		_, err := server.Create(secrets, map[string]any{
			"metadata": map[string]any{"namespace": foreignKey(i).Namespace, "name": foreignKey(i).Name, "labels": map[string]any{"app": "web"}},
			"type":     "Opaque", "stringData": data(i, 0),
		})
		if err != nil {
			return err
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = server.Serve(context.Background(), l) }()
	fmt.Printf("http://%s %x\n", l.Addr(), hide([]byte(marker)))
	for lines, generation := bufio.NewScanner(os.Stdin), 1; lines.Scan(); generation++ {
		count, err := strconv.Atoi(lines.Text())
		if err != nil {
			return err
		}
		var version string
		for i := range count {
			u, err := server.Edit(secrets, foreignKey(i), func(u *unstructured.Unstructured) { u.Object["stringData"] = data(i, generation) })
			if err != nil {
				return err
			}
			version = u.GetResourceVersion()
		}
		fmt.Println(version)
	}
	return nil
}

// startForeign starts a process that serves n Secrets until the test ends.
func startForeign(t testing.TB, n int) *foreign {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), fmt.Sprint(foreignSize, "=", n))
	child.Stderr = os.Stderr
	in := must.Get(child.StdinPipe())(t)
	out := must.Get(child.StdoutPipe())(t)
	require.NoError(t, child.Start())
	t.Cleanup(func() {
		_ = in.Close()
		require.NoError(t, child.Wait())
	})
	f := &foreign{TB: t, in: in, out: bufio.NewReader(out)}
	must.Get(fmt.Sscanf(f.line(), "%s %x", &f.URL, &f.hidden))(t)
	return f
}

func (f *foreign) line() string {
	line := must.Get(f.out.ReadString('\n'))(f)
	return strings.TrimSpace(line)
}

// change changes the values of the first n Secrets, and returns the version after that.
func (f *foreign) change(n int) (version string) {
	must.Get(fmt.Fprintln(f.in, n))(f)
	return f.line()
}

// found returns the numbers of the Secrets whose values are in the memory of this process. It reads /proc, so it skips
// the test on other systems.
func (f *foreign) found() map[string]bool {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		f.Skip("no /proc/self/maps")
	}
	memory, err := os.Open("/proc/self/mem")
	require.NoError(f, err)
	defer memory.Close()
	found := map[string]bool{}
	buffer := make([]byte, 1<<20)
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		var mode string
		must.Get(fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode))(f)
		if mode[0] != 'r' || from > math.MaxInt64 || to-from > 1<<32 { // the shadow of the race detector has no value
			continue
		}
		for overlap := uint64(len(f.hidden) + digits); from < to; from += uint64(len(buffer)) - overlap {
			n, _ := memory.ReadAt(buffer[:min(to-from, uint64(len(buffer)))], int64(from)) // parts of the kernel cannot be read
			for _, after := range bytes.Split(hide(buffer[:n]), f.hidden)[1:] {
				if len(after) >= digits {
					found[string(hide(bytes.Clone(after[:digits])))] = true
				}
			}
		}
	}
	return found
}
