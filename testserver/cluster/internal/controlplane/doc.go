// Package controlplane is etcd and kube-apiserver for tools that start both programs and talk to the second one, such
// as envtest of controller-runtime. The command leat-server runs it under these names.
//
// etcd owns the whole cluster. kube-apiserver reads its flags and files, sends them to etcd, and keeps the connection
// open. For this time, etcd listens on the address of kube-apiserver. So the objects, their versions and the open
// history outlive a kube-apiserver that is stopped or killed, and no request takes a detour. Price: lsof shows etcd
// behind the port of kube-apiserver, and both programs must run on one machine.
//
// # Example
//
//	folder, err := controlplane.Folder("") // has etcd, kube-apiserver and kubectl
//	args := []string{"--data-dir", dir, "--listen-client-urls", url, "--advertise-client-urls", url}
//	code := controlplane.RunEtcd(ctx, args, os.Stdout, os.Stderr)
//
// # Promises
//
//  1. An acknowledged write is kept when kube-apiserver is killed. It is lost when etcd is killed, because etcd writes
//     its state to --data-dir after SIGTERM.
//  2. kube-apiservers of one etcd with the same settings share the objects. A kube-apiserver with other settings is
//     refused while another one runs. Otherwise it gets the objects with newer versions.
//  3. Wrong flags and files give one sentence, and the exit code of the real program.
//  4. A program ends when the program that started it has ended, unless it leads a session. Package front does this.
//
// # Concurrency
//
// RunEtcd and RunAPIServer block until their contexts end, and end everything that they started. Folder may run in
// several processes at the same time.
package controlplane
