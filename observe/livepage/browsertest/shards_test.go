package browsertest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/observe/livepage"
	"github.com/leatproject/leat/scale/scopes"
	"github.com/leatproject/leat/scale/shard"
	"github.com/leatproject/leat/scale/shardedsource"
)

// TestShards shows a replica that has all hashes, and an informer of its ranges, which the client cuts.
func TestShards(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	page := must.Get(livepage.New(livepage.Options{Program: "shards"}))(t)
	member := must.Get(shard.New(p.client, shard.Options{Namespace: "shop", Group: "shop", Identity: "shop-0"}))(t)
	configs := api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
	must.Get(p.server.Create(configs, object("a")))(t)
	set := scopes.New(configs, scopes.Options[*config]{})
	source := apiclient.NewPartial[*config](p.client, configs, "")
	for _, r := range []hashrange.Range{{To: 1 << 62}, {From: 1 << 62, To: 1 << 63}} {
		one := shardedsource.New(source, hashrange.UID, hashrange.NewSet(r), shardedsource.Options{})
		require.NoError(t, set.Add(scopes.Scope[*config]{Name: r.String(), Source: one}))
	}
	for _, part := range []any{member, set} {
		must.Get(page.Register("shard-shop", part))(t)
	}
	fixture.Start(p.t, member.Run)
	fixture.Start(p.t, set.Run)
	b := open(t, p.serve(page.Handler(true)), "", light)
	card := `document.querySelector("#shards-title + .cards > .card")?`
	b.until(card + `.textContent.includes("shop-0 holds 1 range (100.0 % of the hashes); the group shop has 1 member")`)
	require.Contains(t, eval[string](b, card+`.textContent`), "100.0 %of all hashes")
	b.click(".disclosure")
	b.until(`document.querySelectorAll('table[aria-label^="Scopes of"] tbody tr').length === 2`)
	b.until(`document.querySelector('table[aria-label^="Scopes of"]')?.textContent.includes("watching, client cuts")`)
	require.Contains(t, eval[string](b, `document.querySelector(".facts").textContent`), "ShardedListAndWatch")
	b.fitsEverywhere()
}
