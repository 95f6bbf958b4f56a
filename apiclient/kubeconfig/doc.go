// Package kubeconfig reads from kubeconfig files where a server is and who asks, and writes such files.
//
// # Place in the pipeline
//
// Before it: Load gives the apiclient.Config that apiclient.New takes. An agent in a pod calls apiclient.InCluster and
// does not link this package, nor the YAML that comes with it.
//
// # Guarantees
//
//  1. Every field that is not about another program is read, and paths are relative to the file that names them
//     (TestLoadReadsEveryField).
//  2. Of several files the first that names something has the whole say about it (TestFilesOfAListMerge).
//  3. An error is one line that names the file and the field and shows no credential (TestErrorsNameFileAndField).
//  4. What Write writes, Load reads back, and only the owner can read it (TestWriteIsReadBack).
//
// # Concurrency
//
// Functions only; they block on the file system. Two writers of one file leave one of the two files, whole.
//
// # Differences from client-go
//
// A token in the options is who asks: a client certificate of the same user is then not sent, as the server would look at
// that first. Contexts, clusters and users that are missing are named along with those that exist. Credentials from exec
// plugins are an error that names the plugin.
//
// # Example
//
// See Example in example_test.go.
package kubeconfig
