// Package kubeconfig reads the address of a server and the credentials of a user from kubeconfig files, and writes such
// files. Load returns the apiclient.Config for apiclient.New. If the user has a credential plugin, it is a plugin of
// package exec. An agent in a pod calls apiclient.InCluster, and links neither this package nor its YAML decoder.
//
// # Example
//
//	cfg, namespace, err := kubeconfig.Load(ctx, kubeconfig.Options{}) // $KUBECONFIG or ~/.kube/config, or the pod's
//	client, err := apiclient.New(cfg)
//	cfg, namespace, err = kubeconfig.Parse(secret.Data["kubeconfig"], kubeconfig.Options{})
//
// See Example.
//
// # Promises
//
//  1. Load reads every field. Paths are relative to the file that names them, also those of plugins.
//  2. If several files have an entry of one name, the first file wins, and entries are not merged.
//  3. An option wins over the file. A plugin gets the server that the client uses.
//  4. An error is one line that names the file and the field, or the option, and shows no credential.
//  5. A user with a plugin needs no code. The plugin does not run if the file or an option has other credentials.
//  6. Only regular files of at most 4 MiB are read, and nothing in them makes an error long.
//  7. The service account of the pod is used only if no file and no option names a server, and never by Parse.
//  8. Load reads back the file that Write writes, and only its owner can read it.
//
// # Concurrency
//
// The package has only functions. Parse does not block. The others block on the file system, and Load returns when its
// context ends. If two writers write one file, one of the two wins, and the file is complete.
//
// # Differences from client-go
//
// An option with credentials replaces all credentials of the entry. client-go merges them field by field; it may send a
// client certificate beside the token, and the server then ignores the token. In the same way, an option with a user
// name to impersonate replaces the groups of the file.
//
// Missing contexts, clusters and users are errors that list the existing ones; with client-go a missing user is
// anonymous. Other errors are entries without a name, duplicate keys, a second document, a server without a scheme, and
// a client key without its certificate. If an entry has data and the path of a file, the data are used. The
// documentation of client-go says the same, but client-go refuses client certificates and authorities that have both.
// Auth providers (auth-provider) are an error. Without a server there is an error, and no request to localhost:8080.
// Credentials are also sent to a server without TLS, because a proxy on the loopback interface needs them; client-go
// drops them without an error.
//
// All options work in a pod too. If Options name a file, it must have a context; client-go falls back to the pod. Load
// does not look for .kubeconfig, the file name of old versions, and does not ask the user for a password.
package kubeconfig
