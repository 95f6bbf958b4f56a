// Package kubeconfig reads from kubeconfig files where a server is and who asks, and writes such files.
//
// # Place in the pipeline
//
// Before it: Load gives the apiclient.Config that apiclient.New takes, with the plugin of package exec where a user has
// one. An agent in a pod calls apiclient.InCluster and does not link this package, nor the YAML that comes with it.
//
// # Guarantees
//
//  1. Every field is read, and paths are relative to the file that names them, those of plugins too
//     (TestLoadReadsEveryField, TestPluginsAreAsked).
//  2. Of several files the first that names something has the whole say about it (TestFilesOfAListMerge).
//  3. An option wins over what the file says, and the plugin is told of the server that is used
//     (TestEveryOptionOverrides, TestPluginsAreAsked).
//  4. An error is one line that names the file and the field, or the option, and shows no credential
//     (TestErrorsNameFileAndField, TestErrorsOfAConfigurationNameTheField, TestPluginErrorsNameTheField,
//     TestErrorsNameTheOption, FuzzLoad).
//  5. A user with a plugin simply works; the plugin does not run where the file or an option says who asks in a simpler
//     way (TestAUserWithAPluginSimplyWorks, TestWhatWinsOverAPlugin).
//  6. Only regular files of at most 4 MiB are read, and nothing in them makes an error long (TestFilesThatCannotBeRead,
//     TestAFIFOIsNotRead, TestOddFiles, TestComplexFilesAreRefused, TestErrorsAreShort).
//  7. The account of the pod serves only where nothing else is named (TestAPodIsTheLastResort).
//  8. What Write writes, Load reads back, and only the owner can read it (TestWriteIsReadBack).
//
// # Concurrency
//
// Functions only; they block on the file system. Two writers of one file leave one of the two files, whole.
//
// # Differences from client-go
//
// Who asks is said once: an option that says it replaces all credentials of the entry, where client-go merges field by
// field and, for one, sends a client certificate beside the token, which the server then never looks at. In the same way a
// user name to impersonate brings no groups along from the file.
//
// Contexts, clusters and users that are missing are errors, and named along with those that exist; with client-go a
// missing user is anonymous. So are entries without a name, keys that stand twice in a map, a second document, a
// server without a scheme and a client key without its certificate. Data wins over a file beside it; client-go says so
// too, and then refuses the pair for client certificates and authorities. Providers (auth-provider) are an error.
// Nothing is sent to localhost:8080 for want of a server. Credentials are sent to a server without TLS if the file pairs
// them with one, as a proxy on the loopback needs it; client-go drops them without a word.
//
// The options hold in a pod too, all of them. A file that is named in Options must say what to use; client-go asks the
// pod if it does not. The file .kubeconfig of ancient times is not looked for, and nobody is asked for a password.
//
// # Example
//
// See Example in example_test.go.
package kubeconfig
