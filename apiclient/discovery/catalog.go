package discovery

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// catalog has the resources of a server at one time. It is immutable.
type catalog struct {
	roots [2]*root
	// resources are in order of priority: the core group, then the server's order of groups. In a group, versions whose
	// server answers come first, and the preferred version before the others.
	resources []APIResource
	failed    []*DocumentError
}

func newCatalog(core, others *root) *catalog {
	c := &catalog{roots: [2]*root{core, others}}
	for _, r := range c.roots {
		if r.err != nil {
			c.failed = append(c.failed, r.err)
		}
		for _, g := range r.groups {
			c.add(g)
		}
	}
	return c
}

func (c *catalog) add(g *group) {
	answers := func(v *version) int {
		if v.err != nil {
			return 1
		}
		return 0
	}
	seen := map[string]bool{}
	for _, v := range slices.SortedStableFunc(slices.Values(g.versions), func(a, b *version) int {
		return cmp.Compare(answers(a), answers(b))
	}) {
		if v.err != nil {
			c.failed = append(c.failed, v.err)
		}
		for _, r := range v.resources {
			r.Preferred = !seen[r.Plural]
			seen[r.Plural] = true
			c.resources = append(c.resources, r)
		}
	}
}

// root returns the last state of a root, or nil before the first read.
func (c *catalog) root(path string) *root {
	if c == nil {
		return nil
	}
	return c.roots[slices.IndexFunc(c.roots[:], func(r *root) bool { return r.path == path })]
}

// keepKnown gives versions that cannot be read their earlier resources.
func (c *catalog) keepKnown(groups []*group) {
	if c == nil {
		return
	}
	for _, g := range groups {
		for _, v := range g.versions {
			if v.err == nil || len(v.resources) > 0 {
				continue
			}
			for _, r := range c.resources {
				if r.GroupVersion() == v.GroupVersion {
					v.resources = append(v.resources, r)
				}
			}
		}
	}
}

// filter returns the resources for which is returns true.
func (c *catalog) filter(is func(*APIResource) bool) []APIResource {
	var out []APIResource
	for i := range c.resources {
		if is(&c.resources[i]) {
			out = append(out, c.resources[i])
		}
	}
	return out
}

// named returns the resources that a name can mean: plural and singular names before short names, and short names
// before kinds.
func (c *catalog) named(readings []name) []APIResource {
	for _, n := range readings {
		for _, in := range []func(*APIResource) bool{n.inGroup, n.inGroupThatBegins} {
			for _, is := range []func(*APIResource) bool{n.isName, n.isShortName} {
				if found := c.filter(func(r *APIResource) bool { return in(r) && is(r) }); len(found) > 0 {
					return found
				}
			}
		}
	}
	for _, n := range readings {
		if found := c.filter(func(r *APIResource) bool { return n.inGroup(r) && n.isKind(r) }); len(found) > 0 {
			return found
		}
	}
	return nil
}

func (c *catalog) ofKind(gvk schema.GroupVersionKind) []APIResource {
	return c.filter(func(r *APIResource) bool {
		return r.Kind == gvk.Kind && r.Group == gvk.Group && (gvk.Version == "" || gvk.Version == r.Version)
	})
}

func (c *catalog) ofResource(gvr schema.GroupVersionResource) []APIResource {
	return c.filter(func(r *APIResource) bool {
		return r.Plural == gvr.Resource && r.Group == gvr.Group && (gvr.Version == "" || gvr.Version == r.Version)
	})
}

func (c *catalog) inCategory(category string) []APIResource {
	return c.filter(func(r *APIResource) bool { return r.Preferred && slices.Contains(r.Categories, category) })
}

// choose returns the resource of the first group and version in found, which is in order of priority. If that version
// has several, the one with exactly this plural name wins, and otherwise the one that can be read. Many kinds have a
// second resource that takes requests and stores no objects.
func choose(asked, plural string, found []APIResource) (APIResource, error) {
	only := func(is func(APIResource) bool) {
		if some := slices.DeleteFunc(slices.Clone(found), func(r APIResource) bool { return !is(r) }); len(some) > 0 {
			found = some
		}
	}
	first := found[0].GroupVersion()
	only(func(r APIResource) bool { return r.GroupVersion() == first })
	only(func(r APIResource) bool { return strings.EqualFold(r.Plural, plural) })
	only(func(r APIResource) bool { return r.Can("get") || r.Can("list") })
	if len(found) == 1 {
		return found[0], nil
	}
	e := &AmbiguousError{Name: asked}
	for _, r := range found {
		e.Resources = append(e.Resources, r.Resource)
	}
	return APIResource{}, e
}
