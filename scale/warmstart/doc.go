// Package warmstart keeps the collection of an informer in a file, so that an agent that starts again continues its
// watch instead of listing. The first list then costs the server one watch, and the network no objects. It is for
// agents that restart often on the same machine, such as node agents during an upgrade. client-go has no such package.
//
// A ListerWatcher stands between a client and an informer. Its file is a log (keep.go, log.go): a whole list, and each
// change since. A change is written before the informer sees it, so the file is never behind what a handler saw. After
// the end of the process, also by kill -9, the next process reads the log (replay.go), lists from it, and watches from
// its version. If the server has forgotten that version, the informer lists from the server, and decodes only what
// changed.
//
// A killed process may leave a record that is cut off. So a file that was cut off after its list, or replaced by an
// older copy of itself, is used. The informer then shows an older state, like an agent that was down longer: the watch
// from its version brings each change since, or the informer lists. Without a key, a stranger who can write the file
// can write any state, so others must not be able to write to its folder.
//
// The content of the page cache is lost when the machine stops, so a file is used only until then: it names the boot of
// the machine (boot_id of Linux). On other systems, every start lists, and Status says why.
//
// # Example
//
// See Example, which starts an agent twice.
//
//	pods := apiclient.NewPartial[*Pod](client, resource, "")
//	warm, err := warmstart.New(pods, warmstart.Options{Path: "/var/lib/agent/pods.warm", Cluster: client.Host()})
//	if err != nil {
//		return err
//	}
//	defer warm.Close()
//	inf := informer.New(warm, informer.Options[*Pod]{Selector: api.Selector{Fields: "spec.nodeName=" + node}})
//
// # Promises
//
//  1. A process that starts again shows no state older than the one before it showed, or it lists. This holds if only
//     these processes change the file.
//  2. It uses a file only for the same collection: the cluster, the resource, the namespace, the selectors, the shard,
//     the fields of T and the boot of the machine.
//  3. A file that is damaged or of another kind leads to a list, and to one line in the log. So does a file that is cut
//     off before the end of its list. A file that is cut off later shows the state up to there, and no change is lost.
//  4. If the disk is full or fails, or more is written than the limit, the informer goes on. The file is given up until
//     the next list, with one line in the log.
//  5. Secrets are refused without a key. With a key, AES-256-GCM encrypts every object, key and version. Then a
//     stranger who can write the file can bring back an earlier state of it, and no state that it never had.
//  6. The file is at most about twice as large as the last whole state and 4 MiB.
//  7. Others cannot read what is written. No symbolic link is followed, and no file is used that is not regular, that
//     another user owns, or that others can read or write.
//
// # Limits
//
// The file has the objects as T encodes them, not as the server sent them. So an empty list or map, which was [] or {}
// in the JSON of the server, is nil in an object from the file if its field has omitempty. Compare lists and maps by
// their length, or with equality.Semantic of apimachinery. The next change of the object, or a list of the server, has
// the empty value again.
//
// An informer of packed objects (package packed) writes the bytes that it holds, so the file also has fields that T
// does not declare. Bytes that are compressed, or in another format than the file's, are decoded first.
//
// # Concurrency
//
// A ListerWatcher belongs to one informer. Status and Close may be called on any goroutine. List and Watch block as
// those of the source do, and in addition as the file system does. A list from the file uses a goroutine for each
// processor, except a list of packed objects; they end before the list does.
package warmstart
