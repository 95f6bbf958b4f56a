// Package exec gets credentials from a program that a kubeconfig names, as the API group client.authentication.k8s.io
// has it.
//
// # Place in the pipeline
//
// Before it: a Plugin is an apiclient.CredentialSource, which the client asks before each request. Package kubeconfig
// makes one of a user's entry with exec; a program that knows its plugin makes it by hand. The protocol is that of
// KEP-541, in versions v1 and v1beta1.
//
// # Guarantees
//
//  1. There is one run at a time, and it serves all who ask; who gives up ends nobody else's
//     (TestOneRunServesAllWhoAsk, TestWhoGivesUpEndsNobodysRun).
//  2. No process outlives those who wait for it: when the last has left, or after Terms.Timeout, it is killed with the
//     children of its group (TestARunThatNobodyWantsEnds, TestAPluginEndsWithItsChildren, TestAnInteractivePluginEndsToo,
//     TestWhatIsRunHasATimeout).
//  3. Credentials are replaced ten seconds before their timestamp or their certificate ends, or when they end if the
//     plugin gives them out later than that; a failure to replace them costs nothing before they end
//     (TestCredentialsAreReplacedBeforeTheyExpire, TestCredentialsThatAreNearTheirEndAreUsedUp, TestCertificates,
//     TestGoodCredentialsOutliveAFailure).
//  4. A refusal by the server replaces the credentials that it refused, and no newer ones; refused ones do not come back
//     (TestRefusedCredentialsAreReplaced, TestRefusedCredentialsDoNotComeBack).
//  5. There are ten seconds between a run that did not help and the next
//     (TestAfterAFailureThereIsAPause, TestRefusedCredentialsAreReplaced).
//  6. A certificate that the plugin gives again is the same one to the client, which keeps its connections
//     (TestCertificates).
//  7. Everything that can be wrong with a plugin is an error of its own, on one line, that quotes nothing of the answer
//     but version and kind (TestBadAnswersAreErrorsOfTheirOwn, FuzzAnswers, TestFailuresSayWhatThePluginSaid, TestLongComplaintsAreCut,
//     TestACommandThatIsMissingComesWithItsHint, TestTooMuchOutputIsNotRead). Secrets that a plugin writes to standard error
//     are hidden: known ones in every encoding, values behind names such as token or password, and long texts that look
//     random. Error codes, causes and paths of files stay (TestSecretsInComplaintsAreHidden, TestRandomTextsAreHidden,
//     TestKnownSecretsAreHiddenInEveryForm, TestMessagesStayReadable, FuzzRedact).
//  8. No command is taken from the current folder, and none runs that the policy does not allow by the path that is run
//     (TestWhereCommandsAreLookedFor, TestPoliciesDecideByWhatIsRun).
//  9. A plugin reads the program's standard input only if it may and if that is a terminal
//     (TestInteractiveModes, TestATerminalIsRecognised, TestWhatAPluginIsGiven).
//  10. Printed, a Plugin and its Options show no credential (TestPluginsHideWhatTheyKnow).
//
// # Concurrency
//
// A Plugin is safe for concurrent use. Credentials blocks while the plugin runs, until its context ends; Refused never
// blocks. A run has a goroutine and a process, and both are gone when the last of those who waited for it has returned: that
// may take a second if a child that left the plugin's group holds its output. Nothing is called under the lock.
//
// A plugin that has the terminal stays in the program's group of processes, as it could not read from the terminal
// otherwise; it gets SIGTERM first, so that it can put the terminal right, and its own children are its own business.
// What it says goes to the user alone. What others write to standard error is kept for the error, since it is what the
// plugin's author wanted the user to read: the first three lines and the last. Where there are no groups of processes
// (Windows), the plugin is killed alone.
//
// # Differences from client-go
//
// Plugins are not shared by a global cache: who wants one process for several clients gives them one Plugin. Credentials
// end with their certificate, and ten seconds early; those that have ended already are an error and not sent. client-go
// waits for ever for a plugin, or for a daemon that holds its output, and runs it for each request while it fails or is
// refused; there, one request's cancellation does not end a run. An answer must be JSON, while client-go reads YAML too.
// An entry of the allow-list that is a path must be absolute. Standard error goes to the program's only if the plugin
// has the terminal, or if Terms say so.
//
// # Example
//
// See Example in example_test.go.
package exec
