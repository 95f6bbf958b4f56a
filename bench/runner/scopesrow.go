package runner

import "github.com/leatproject/leat/bench/subject"

// namespaces measures programs that read one resource in many namespaces, because they may not read all of them.
func namespaces(z Sizes) Row {
	empty := subject.Spec{Work: subject.Resources, Namespaces: z.Namespaces, Form: subject.Unstructured}
	full := empty
	full.Objects = 20
	return Row{
		Name: "scopes", Title: "Many namespaces", Quick: true, Rounds: min(3, z.Rounds),
		Columns: []string{"KB/collection", "RSS MB", "goroutines", "connections", "wall s", "cpu s"},
		Note: "One resource in 1,000 namespaces, over TLS and HTTP/2, as maps: one informer of package scopes, or an " +
			"informer of client-go for each namespace, without an index and without a limit of requests. KB/collection is the heap and " +
			"the stacks for each namespace, with the connections. From before the client exists until every namespace is synced.",
		Entrants: []Entrant{
			{Label: "leat, empty namespaces", Program: leat, Spec: empty},
			{Label: "client-go, empty namespaces", Program: clientGo, Spec: empty},
			{Label: "leat, 20 objects of 2 KB", Program: leat, Spec: full},
			{Label: "client-go, 20 objects of 2 KB", Program: clientGo, Spec: full},
		},
	}
}

// warmStarts measures first lists from a file.
func warmStarts(z Sizes) Row {
	spec := subject.Spec{Work: subject.Warm, Objects: z.Cached}
	return Row{
		Name: "warm", Title: "A warm start", Quick: true, Rounds: min(3, z.Rounds),
		Columns: []string{"list ms", "warm ms", "list cpu ms", "warm cpu ms", "list KB", "warm KB", "file MB"},
		Note: "50,000 pods. The first list from the server, and from the file that package warmstart has kept, until the handler has " +
			"every pod. KB are the bytes that the client reads from the network until then.",
		Entrants: []Entrant{
			entrant("leat, corev1.Pod", leat, spec, subject.Full, ""),
			entrant("leat, 8 fields, JSON", leat, spec, subject.Struct, subject.JSON),
		},
	}
}
