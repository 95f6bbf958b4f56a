package compare_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/e2e/compare"
	"github.com/leatproject/leat/internal/fixture/must"
)

func differences(aspects ...string) []compare.Difference {
	var found []compare.Difference
	for _, a := range aspects {
		found = append(found, compare.Difference{Aspect: a, Detail: a})
	}
	return found
}

const rows = `
== some fields are missing
a/b/c  .spec Warning

== a bug
a/b/d  404-not-200
`

// TestTableChecks checks that each kind of change of a difference is noticed.
func TestTableChecks(t *testing.T) {
	table := must.Get(compare.ParseTable("# comment\n" + rows))(t)
	require.NoError(t, table.Check("a/b/c", differences("Warning", ".spec", ".spec")))
	require.NoError(t, table.Check("a/b/x", nil))
	require.ErrorContains(t, table.Check("a/b/x", differences(".spec")), "a difference that the table does not have")
	require.ErrorContains(t, table.Check("a/b/c", nil), "no difference any more")
	require.ErrorContains(t, table.Check("a/b/c", differences(".spec")), "another difference")
	require.ErrorContains(t, table.Check("a/b/c", differences(".spec", ".status", "Warning")), "another difference")
}

func TestTableUpdates(t *testing.T) {
	table := must.Get(compare.ParseTable(rows))(t)
	require.Contains(t, table.String(), rows)
	table.Update("a/b/c", differences(".spec"))
	table.Update("a/b/d", nil)
	table.Update("a/b/e", differences("stdout"))
	require.Contains(t, table.String(), "\n== some fields are missing\na/b/c  .spec\n\n== TO EXPLAIN\na/b/e  stdout\n")
	require.NotContains(t, table.String(), "a bug")
	require.ErrorContains(t, table.Check("a/b/e", differences("stdout")), "needs a reason")

	area := must.Get(compare.ParseArea("a", "== b\n-- c\nGET /"))(t)
	require.Equal(t, []string{"a/b/e"}, table.Strangers([]*compare.Area{area}))
	table.Remove("a/b/e")
	require.Empty(t, table.Strangers([]*compare.Area{area}))
}

func TestParseTableRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"a/b/c .spec":                            "without a reason",
		"== r\na/b/c":                            "a step and an aspect",
		"== r\na/b/c x\na/b/c y":                 "two rows",
		"== r\na/b/c x\n== s\na/b/d x\n== r\n\n": "is there twice",
	} {
		require.ErrorContains(t, must.Err(compare.ParseTable(text)), want)
	}
}

func TestPage(t *testing.T) {
	table := must.Get(compare.ParseTable(rows))(t)
	const begin, end = "<!-- go test -C e2e ./compare -update writes this part -->\n", "<!-- end -->\n"
	tallies := []compare.Tally{
		{Area: &compare.Area{Name: "verbs", About: "create"}, Equal: 3, All: 4},
		{Area: &compare.Area{Name: "lists", About: "pages"}, Equal: 1, All: 2},
	}
	page := must.Get(compare.Page("before\n"+begin+"old"+end+"after\n", tallies, table))(t)
	require.Contains(t, page, "before\n"+begin)
	require.Contains(t, page, "| verbs | 3 of 4 | create |\n| lists | 1 of 2 | pages |\n| all | 4 of 6 | |\n")
	require.Contains(t, page, "| some fields are missing | 1 |\n")
	require.Contains(t, page, end+"after\n")
	require.NotContains(t, page, "old")
	again := must.Get(compare.Page(page, tallies, table))(t)
	require.Equal(t, page, again)
	require.Equal(t, "verbs 3/4 equal", tallies[0].String())

	require.ErrorContains(t, must.Err(compare.Page("no marks", tallies, table)), "needs the marks")
}
