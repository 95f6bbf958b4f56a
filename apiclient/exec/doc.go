// Package exec gets credentials from a program that a kubeconfig names, with the API group client.authentication.k8s.io
// (KEP-541), versions v1 and v1beta1. A Plugin is an apiclient.CredentialSource, which the client calls before each
// request. Package kubeconfig makes one for a user with exec; a program that knows its plugin calls New itself.
//
// # Example
//
//	plugin, err := exec.New(exec.Options{Command: "login", APIVersion: exec.V1, InteractiveMode: exec.Never})
//	client, err := apiclient.New(apiclient.Config{Host: host, Credentials: plugin})
//
// See Example, which allows only one command.
//
// # Promises
//
//  1. There is one run at a time, and all waiting calls share it. A call that gives up does not end the run of the
//     others.
//  2. No process outlives the calls that wait for it: when the last call has left, or after Terms.Timeout, it is killed
//     with the children of its group.
//  3. Credentials are replaced ten seconds before they expire. Credentials that expire sooner than that are used until
//     they expire. A failed replacement has no effect until the old credentials expire.
//  4. If the server refuses credentials, they are replaced, and they do not come back. A refusal of older credentials
//     has no effect.
//  5. There are ten seconds between a run without success and the next run.
//  6. Each fault of a plugin has its own error, on one line, which quotes only the version and the kind of the answer.
//     Nothing that the plugin prints to its standard error is in it.
//  7. No command of the current folder runs, and no command that the policy does not allow. The policy checks the path
//     that runs.
//  8. A Plugin and its Options show no credential when they are formatted.
//
// # Concurrency
//
// A Plugin is safe for concurrent use. Credentials blocks while the plugin runs, until its context ends; Refused does
// not block. A run has a goroutine and a process, and both have ended when the last of the waiting calls has returned.
// That may take a second if a child outside the plugin's group holds its output. No function is called under the lock.
//
// A plugin with the terminal stays in the program's process group, because it could not read from the terminal
// otherwise. It gets SIGTERM first, so that it can reset the terminal. Its children are not killed. Without process
// groups (Windows), only the plugin is killed.
//
// # Differences from client-go
//
//   - There is no global cache of plugins; several clients may share one Plugin.
//   - Credentials end with their certificate, and ten seconds early. Expired credentials are an error and are not sent.
//   - client-go waits forever for a plugin, or for a daemon that holds its output, and runs it for each request while
//     it fails or is refused. A cancelled request does not end a run.
//   - An answer must be JSON; client-go also reads YAML. An entry of the allow-list that is a path must be absolute.
package exec
