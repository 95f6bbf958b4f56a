// Package regularfile reads the files that users and kubeconfigs name: kubeconfigs, tokens, certificates and keys. A
// path may lead to anything. A read of a FIFO blocks until somebody writes, a read of a terminal until somebody types,
// and a read of /dev/zero never ends. No context ends such a read, so only regular files of bounded size are read.
//
// Other packages keep files of their own, with what only their user may read. A stranger who can write to the folder
// could put a symbolic link or an open file at the path. Create and OpenPrivate use neither.
//
// # Example
//
//	content, err := regularfile.Read("/var/run/secrets/kubernetes.io/serviceaccount/token")
//
//	file, err := regularfile.Create("/var/lib/agent/pods.warm.new")
//
// # Promises
//
//  1. Only regular files are read. Symbolic links to regular files are followed, because kubelet mounts Secrets as
//     links.
//  2. A read does not wait for a writer, also if a FIFO replaces the file in the meantime.
//  3. A file has at most MaxBytes, also if it grows while it is read.
//  4. An error is an *fs.PathError. It names the path and the kind of file, and never the content.
//  5. Create makes a file that did not exist, with the mode 0600. It removes what is at the path, and does not follow a
//     symbolic link.
//  6. OpenPrivate opens only a regular file of the same user that others can neither read nor write. It does not follow
//     a symbolic link, and does not wait.
//
// # Concurrency
//
// The package has only functions. They block only as long as the file system does.
//
// # Differences from client-go
//
// client-go reads whatever the path leads to, whatever its size. A kubeconfig or a token in a pipe, as in
// --kubeconfig <(command), works there, once.
package regularfile
