package serve_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
)

// TestClustersComeAndGo creates, forks and deletes clusters, and uses each below its path.
func TestClustersComeAndGo(t *testing.T) {
	p := start(t, "--max-clusters", "3", "--fault", "get secrets: fail 503")
	in := func(cluster string) string { return "/clusters/" + cluster + mapsPath }
	require.Equal(t, "[]\n", p.ok("GET", "/clusters", ""))
	p.requireCode(201, "POST", mapsPath, oneMap)
	require.JSONEq(t, `{"name":"a","server":"`+p.api+`/clusters/a"}`, p.ok("PUT", "/clusters/a", ""))
	require.Equal(t, p.requireCode(200, "GET", mapsPath+"/one", ""), p.requireCode(200, "GET", in("a")+"/one", ""))
	p.requireCode(200, "DELETE", in("a")+"/one", "")
	p.requireCode(200, "GET", mapsPath+"/one", "")
	p.ok("PUT", "/clusters/b?from=a", "")
	p.requireCode(404, "GET", in("b")+"/one", "")
	p.requireCode(201, "POST", in("b"), oneMap)
	p.requireCode(404, "GET", in("a")+"/one", "")
	p.requireCode(200, "GET", "/clusters/a/api", "")
	p.ok("PUT", "/clusters/"+strings.Repeat("x", 63), "")
	require.Contains(t, p.ok("GET", "/clusters", ""), `"from": "a"`)
	require.Contains(t, p.ok("GET", "/clusters/b/kubeconfig", ""), "server: "+p.api+"/clusters/b\n")

	for _, tc := range []struct {
		code              int
		method, url, says string
	}{
		{403, "PUT", "/clusters/c", "cluster c: the limit of --max-clusters 3 is reached; delete a cluster first"},
		{409, "PUT", "/clusters/a", "cluster a exists; delete it first, or choose another name"},
		{404, "PUT", "/clusters/c?from=c", `there is no cluster "c"`},
		{404, "DELETE", "/clusters/c", `there is no cluster "c"`},
		{404, "GET", "/clusters/c", `there is no cluster "c"`},
		{404, "GET", "/clusters/c/kubeconfig", `there is no cluster "c"`},
		{404, "GET", "/clusters/%1b%5b2J/faults", `there is no cluster "\x1b[2J"`},
		{400, "PUT", "/clusters/c?form=a", `cluster c: the only parameter is from=NAME, and got "form=a"`},
		{400, "PUT", "/clusters/c?from=%zz", `cluster c: the parameters: invalid URL escape "%zz"`},
		{400, "PUT", "/clusters/c?from=", `cluster c: the only parameter is from=NAME, and got "from="`},
		{404, "PUT", "/clusters/c/", "the path of a cluster has no slash at its end"},
		{405, "POST", "/clusters/c", "PUT creates a cluster, and POST does not"},
		{400, "PUT", "/clusters/C", `cluster "C": a name has at most 63 characters of a-z, 0-9 and -`},
		{400, "PUT", "/clusters/-c", `cluster "-c": a name has`},
		{400, "PUT", "/clusters/" + strings.Repeat("x", 10_000), `a name has`},
	} {
		code, text := p.send(tc.method, p.admin+tc.url, "")
		require.Equal(t, tc.code, code, text)
		require.Contains(t, text, tc.says)
		require.Equal(t, 1, strings.Count(text, "\n"))
		require.Less(t, len(text), 512)
	}
	require.JSONEq(t, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"clusters \"c\" not found",
		"reason":"NotFound","details":{"name":"c","kind":"clusters"},"code":404}`, p.requireCode(404, "GET", in("c"), ""))

	// A deleted cluster ends its watches, and its name is free.
	watch := must.Get(http.Get(p.api + in("a") + "?watch=true"))(t)
	defer watch.Body.Close()
	p.ok("DELETE", "/clusters/a", "")
	_, err := io.ReadAll(watch.Body)
	require.NoError(t, err)
	p.requireCode(404, "GET", in("a"), "")
	p.requireCode(201, "POST", in("b"), strings.Replace(oneMap, "one", "two", 1))
	p.ok("PUT", "/clusters/a", "")
	p.requireCode(200, "GET", in("a")+"/one", "")
	watch = must.Get(http.Get(p.api + in("a") + "?watch=true"))(t)
	defer watch.Body.Close()
	p.end()
}

// TestADeletionWaitsForNoClient deletes a cluster whose clients do not send the rest of a request, or do not read.
func TestADeletionWaitsForNoClient(t *testing.T) {
	p := start(t)
	host := strings.TrimPrefix(p.api, "http://")
	p.ok("PUT", "/clusters/a", "")
	for _, request := range []string{"POST /clusters/a" + mapsPath + " HTTP/1.1\r\nContent-Length: 100", "GET /clusters/a" + mapsPath + "?watch=1 HTTP/1.1"} {
		conn := must.Get(net.Dial("tcp", host))(t)
		defer conn.Close()
		_ = must.Get(fmt.Fprintf(conn, "%s\r\nHost: %s\r\nContent-Type: application/json\r\n\r\n{", request, host))(t)
	}
	for !strings.Contains(p.ok("GET", "/clusters/a/watches", ""), "watch") {
		runtime.Gosched()
	}
	large := `{"metadata":{"name":"large"},"data":{"a":"` + strings.Repeat("x", 900_000) + `"}}`
	for i := range 20 { // more than the buffers of the connection
		p.requireCode(201, "POST", "/clusters/a"+mapsPath, strings.Replace(large, "large", fmt.Sprint("large-", i), 1))
	}
	p.ok("DELETE", "/clusters/a", "")
	p.requireCode(404, "GET", "/clusters/a"+mapsPath, "")
	p.end()
}

// TestAFullCluster creates one object too many. Each cluster has the limit for itself.
func TestAFullCluster(t *testing.T) {
	p := start(t, "--max-objects", "5", "--max-bytes", "3000", "--max-clusters", "1") // there are 4 namespaces
	p.ok("PUT", "/clusters/a", "")
	two := strings.Replace(oneMap, "one", "two", 1)
	for _, cluster := range []string{"", "/clusters/a"} {
		p.requireCode(201, "POST", cluster+mapsPath, oneMap)
		text := p.requireCode(500, "POST", cluster+mapsPath, two)
		require.JSONEq(t, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",
			"message":"etcdserver: mvcc: database space exceeded","code":500}`, text)
		p.requireCode(200, "PUT", cluster+mapsPath+"/one", oneMap)
		p.requireCode(500, "PUT", cluster+mapsPath+"/one", strings.Replace(oneMap, "one\"", "one\",\"annotations\":{\"a\":\""+strings.Repeat("x", 3000)+"\"}", 1))
		p.requireCode(200, "DELETE", cluster+mapsPath+"/one", "")
		p.requireCode(201, "POST", cluster+mapsPath, two)
	}
}

// TestClustersDoNotWait keeps an answer of one cluster waiting. Another one answers, forks begin with the state of the
// first one, and its deletion ends the answer.
func TestClustersDoNotWait(t *testing.T) {
	p := start(t)
	p.ok("PUT", "/clusters/a", "")
	p.requireCode(201, "POST", "/clusters/a"+mapsPath, oneMap)
	p.ok("POST", "/clusters/a/faults", "list configmaps: stall 10")
	stalled := must.Get(http.Get(p.api + "/clusters/a" + mapsPath))(t)
	defer stalled.Body.Close()
	p.ok("PUT", "/clusters/b?from=a", "")
	p.requireCode(200, "GET", "/clusters/b"+mapsPath, "")
	p.requireCode(200, "GET", "/clusters/b"+mapsPath+"/one", "")
	p.requireCode(200, "GET", mapsPath, "")
	p.ok("DELETE", "/clusters/a", "")
	_, err := io.ReadAll(stalled.Body)
	require.Error(t, err)
}

// TestClustersHaveFaultsOfTheirOwn uses the admin requests of one cluster. The others are not disturbed.
func TestClustersHaveFaultsOfTheirOwn(t *testing.T) {
	p := start(t, "--fault", "get secrets: fail 503")
	const a = "/clusters/a"
	p.ok("PUT", a, "")
	p.requireCode(404, "GET", a+"/api/v1/namespaces/default/secrets/x", "")
	p.ok("POST", a+"/faults", "list configmaps: fail 429 times=1")
	p.requireCode(200, "GET", mapsPath, "")
	p.requireCode(429, "GET", a+mapsPath, "")
	require.Contains(t, p.ok("GET", a+"/faults", ""), `"seen": 1`)

	p.ok("DELETE", a+"/requests", "")
	p.requireCode(201, "POST", a+mapsPath, oneMap)
	var seen []struct{ Verb, Path string }
	require.NoError(t, json.Unmarshal([]byte(p.ok("GET", a+"/requests", "")), &seen))
	require.Len(t, seen, 1)
	require.Equal(t, "create "+mapsPath, seen[0].Verb+" "+seen[0].Path)
	state := p.ok("GET", "/state", "")
	require.Contains(t, p.ok("GET", a+"/state", ""), `"one"`)
	require.NotContains(t, state, `"one"`)

	watch := must.Get(http.Get(p.api + a + mapsPath + "?watch=true"))(t)
	defer watch.Body.Close()
	p.ok("POST", a+"/faults", "outage")
	_, err := io.ReadAll(watch.Body)
	require.Error(t, err)
	_, err = http.Get(p.api + a + mapsPath)
	require.Error(t, err)
	p.requireCode(200, "GET", mapsPath, "")
	p.ok("DELETE", a+"/faults", "")
	p.requireCode(200, "GET", a+mapsPath, "")
	p.ok("PUT", a+"/state", state)
	p.requireCode(404, "GET", a+mapsPath+"/one", "")

	for path, code := range map[string]int{"/restart": 404, "/state/save": 404, "/nothing": 404} {
		got, text := p.send("POST", p.admin+a+path, "")
		require.Equal(t, code, got, text)
	}
	watch = must.Get(http.Get(p.api + a + mapsPath + "?watch=true"))(t)
	defer watch.Body.Close()
	p.ok("POST", "/restart", "")
	_, _ = io.ReadAll(watch.Body)
	p.requireCode(200, "GET", a+mapsPath, "")
}
