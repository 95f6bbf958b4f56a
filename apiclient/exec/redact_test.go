package exec_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient/exec"
)

// planted are places where plugins show secrets: %s stands for one.
var planted = []string{
	"token: %s",
	"token=%s",
	"token = \"%s\"",
	"TOKEN=%s ./login",
	"export GITHUB_TOKEN='%s'",
	"AWS_SECRET_ACCESS_KEY: %s",
	"AWS_SECRET_ACCESS_KEY=%s",
	"aws_session_token = %s",
	"map[token:%s]",
	"map[expires:3600 access_token:%s type:jwt]",
	"map[Authorization:[Bearer %s] Accept:[*/*]]",
	"{Token:%s Expires:0}",
	"&{AccessToken:%s TokenType:Bearer}",
	`main.T{Token:"%s"}`,
	"{'access_token': '%s'}",
	"{'access_token': '%s', 'expires_in': 3600}",
	"{'access_token': b'%s'}",
	"{u'password': u'%s'}",
	`{"id_token":"%s"}`,
	`{"id_token" : "%s", "a": 1}`,
	`bad answer "{\"id_token\": \"%s\"}"`,
	`{"clientKeyData":"a\n%s\n"}`,
	"{:token=>\"%s\"}",
	"{\"secret\"=>\"%s\"}",
	"<AccessToken>%s</AccessToken>",
	"password: %s",
	"password: two words and %s",
	"Password=%s;Server=db",
	"PGPASSWORD=%s psql",
	"db_passwd=%s",
	"passphrase: '%s'",
	"api-key: %s",
	"X-Api-Key: %s",
	"apiKey=%s",
	"AccountKey=%s;EndpointSuffix=core.windows.net",
	"client_secret=%s&grant_type=refresh_token",
	"GET /?access_token=%s&x=1: 403",
	"GET https://h/cb?code=%s",
	"GET https://h/blob?sig=%s",
	"curl -u u:%s https://h",
	"curl -u 'u:%s' https://h",
	"curl --user u:%s",
	"curl --user=u:%s",
	"curl --proxy-user \"u:%s\" https://h",
	"['curl', '-u', 'u:%s']",
	"curl -H 'Authorization: Token %s'",
	"curl -H \"X-Vault-Token: %s\"",
	"login --token %s --verbose",
	"login --token=%s",
	"login -password %s",
	"[login --client-secret %s]",
	`["login" "--password" "%s"]`,
	"['login', '--token', '%s']",
	"docker login -u joe -p %s",
	"Authorization: Bearer %s",
	"authorization: bearer %s",
	"Proxy-Authorization: Basic %s",
	"'Authorization': 'Digest username=\"u\", response=%s'",
	"Cookie: a=1; session=%s",
	"Set-Cookie: id=%s; Path=/",
	"https://joe:%s@registry.example/v2",
	"https://%s@registry.example/v2",
	"dial postgres://joe:%s@db:5432/x: refused",
	"joe:%s@registry.example",
	"-----BEGIN PRIVATE KEY-----\n%s\n-----END PRIVATE KEY-----",
	"-----BEGIN OPENSSH PRIVATE KEY-----\n%s",
	"%s\n-----END RSA PRIVATE KEY-----",
	"token: |\n  %s\n",
	"refused: eyJhbGciOiJub25lIn0.eyJzdWIiOiJqYW5lIn0.%s, it is old",
	"credentials: %s",
	"the secret is: token=%s",
	"signature=%s",
}

func TestSecretsInComplaintsAreHidden(t *testing.T) {
	for _, secret := range []string{secret, "hunter2", "Tr0ub4dor", "PLANTEDSECRET", "swordfish"} {
		for _, form := range planted {
			text := exec.Redact("before\n"+fmt.Sprintf(form, secret)+"\nafter", nil)
			require.NotContains(t, text, secret, form)
			require.Contains(t, text, "(not shown)", form)
			if !strings.Contains(form, "KEY-----") {
				require.True(t, strings.HasPrefix(text, "before\n") && strings.HasSuffix(text, "\nafter"), text)
			}
		}
	}
}

// A long random text is a secret wherever it stands.
func TestRandomTextsAreHidden(t *testing.T) {
	for _, random := range []string{
		"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
		"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"ghp_16C7e42F292c6912E7710c838347Ae178B4a",
		"k8s-aws-v1.aHR0cHM6Ly9zdHMuZXUtd2VzdC0xLmFtYXpvbmF3cy5jb20vP0FjdGlvbj1HZXRDYWxsZXJJZGVudGl0eQ",
		"ya29.a0AfH6SMBx7Qk2v9ZcPq1LmN8tRw5Yh3",
		"1b4e28ba-2fa1-11d2-883f-0016d3cca427",
		base64.StdEncoding.EncodeToString([]byte("joe:correct horse")),
	} {
		for _, form := range []string{"%s", "got %s back", "(%s)", "https://h/hook/%s?x", "a,%s,b"} {
			text := exec.Redact(fmt.Sprintf(form, random), nil)
			require.NotContains(t, text, random[12:], form)
		}
	}
}

// TestAnyWordBehindTheNameOfASecretIsHidden has secrets that look like words, in sentences.
func TestAnyWordBehindTheNameOfASecretIsHidden(t *testing.T) {
	for _, secret := range []string{"X", "hunter", "correcthorse", "abc-def", "Passw0rd"} {
		for _, sentence := range []string{
			"got token %s but it is too old", "the token is %s", "token \"%s\" was refused", "password %s is wrong", "your secret was %s.",
			"Token %s", "the value of token %s, of pod 7", "expected a passphrase and got passphrase '%s'", "the token is the %s of yesterday",
		} {
			text := fmt.Sprintf(sentence, secret)
			require.Equal(t, strings.TrimSuffix(fmt.Sprintf(sentence, "(not shown)"), "."), strings.TrimSuffix(exec.Redact(text, nil), "."), text)
		}
	}
}

func TestMessagesStayReadable(t *testing.T) {
	for _, text := range []string{
		"AccessDenied: User: arn:aws:iam::123456789012:user/jane is not authorized to perform: eks:DescribeCluster",
		"An error occurred (AccessDenied) when calling the AssumeRole operation: no",
		"InvalidClientTokenId: The security token included in the request is invalid",
		"UnrecognizedClientException: The security token included in the request is invalid.",
		"NoCredentialProviders: no valid providers in chain",
		"no token was found in the cache, and the token is expired",
		"the password is required; the token has no value",
		"ExpiredTokenException: The security token has expired",
		"invalid token: the session expired, log in anew",
		"oauth2: cannot fetch token: 401 Unauthorized",
		"cannot fetch token: invalid_grant",
		"unable to get token: context deadline exceeded",
		"could not read credentials: EOF",
		"Error when retrieving token from sso: Token has expired and refresh failed",
		"open /var/run/secrets/kubernetes.io/serviceaccount/token: no such file or directory",
		"open /home/jane/.aws/credentials: permission denied",
		`open C:\Users\jane\.aws\credentials: The system cannot find the file specified.`,
		"open /home/jane/.aws/sso/cache/5f2a9b7c1d3e4f60718293a4b5c6d7e8f9012345.json: no such file or directory",
		"read ./cache/5f2a9b7c1d3e4f60718293a4b5c6d7e8f9012345.json: is a directory",
		"AWS_WEB_IDENTITY_TOKEN_FILE=/var/run/secrets/eks/token",
		"tokenFile: /var/run/token",
		"--token-file /var/run/token is empty",
		"token_type: Bearer",
		"token_url=https://login.example/oauth/token",
		"POST https://login.example/oauth/token: 403 Forbidden",
		"the secret name is db-credentials",
		"your session expired\n  log in with `aws sso login --profile prod`",
		"basic authentication failed",
		"bearer authentication is needed",
		"dial tcp 10.0.0.1:443: connect: connection refused",
		"gke-gcloud-auth-plugin: exec format error",
		"/usr/local/google-cloud-sdk/bin/gke-gcloud-auth-plugin: not found",
		"Unable to locate credentials. You can configure credentials by running \"aws configure\".",
		"get credentials: exec: \"aws\": executable file not found in $PATH",
		"error: You must be logged in to the server (Unauthorized)",
		"x509: certificate signed by unknown authority",
		"az login --tenant contoso.example --use-device-code",
		"-p /etc/app and -p ./app are paths",
		"role arn:aws:iam::123456789012:role/eks-cluster-admin-production-eu-west-1",
		"2024-01-15T10:30:00.000Z ERROR it failed",
		"",
	} {
		require.Equal(t, text, exec.Redact(text, nil))
	}
}

func TestKnownSecretsAreHiddenInEveryForm(t *testing.T) {
	const known = "s3cr3t \"t0k&n\"/+é"
	known64 := []byte("joe:" + known + "\n")
	for form, text := range map[string]string{
		"as it is":        "I got " + known + ".",
		"query":           "GET /?a=" + url.QueryEscape(known),
		"path":            "GET /" + url.PathEscape(known),
		"JSON":            `said "s3cr3t \"t0k&n\"/+é"`,
		"Go":              fmt.Sprintf("said %q", known),
		"HTML":            "s3cr3t &#34;t0k&amp;n&#34;/+é",
		"base64":          "x " + base64.StdEncoding.EncodeToString([]byte(known)),
		"base64, raw":     "x " + base64.RawStdEncoding.EncodeToString([]byte(known)),
		"base64, URL":     "x " + base64.URLEncoding.EncodeToString([]byte(known)),
		"base64, shifted": "x " + base64.StdEncoding.EncodeToString(known64),
		"base64, by one":  "x " + base64.StdEncoding.EncodeToString(known64[3:]),
		"base64, by two":  "x " + base64.StdEncoding.EncodeToString(known64[2:]),
		"hexadecimal":     "x " + hex.EncodeToString([]byte(known)),
		"cut":             "I got s3cr3t \"t0k...",
	} {
		got := exec.Redact(text, []string{"short", known})
		require.Contains(t, got, "(not shown)", form)
		for _, part := range []string{"s3cr3t", "t0k", "czNjcjN0", "733363723374"} {
			require.NotContains(t, got, part, form)
		}
	}
	require.Equal(t, "line (not shown)", exec.Redact("line second-line", []string{"first-line\nsecond-line\n"}))
	require.Equal(t, "(not shown) and (not shown)", exec.Redact("abcdefgh and abcdefghij", []string{"abcdefgh", "abcdefghij"}))
	require.Equal(t, "a no", exec.Redact("a no", []string{"no", "a", ""}))
	require.Equal(t, []string{"s3cr3t-t0ken"}, exec.InheritedSecrets([]string{
		"PATH=/usr/bin", "VAULT_TOKEN=s3cr3t-t0ken", "TOKEN=short", "TOKEN_FILE=/var/run/token", "SECRET", "HOME=/home/jane",
	}))
}

// FuzzRedact plants secrets, in any company.
func FuzzRedact(f *testing.F) {
	for i := range planted {
		f.Add([]byte("s3cr3t-t0ken"), uint(i), "before", "after")
	}
	f.Add([]byte{0xff, 0, 1, 2, 3, 4, 5, 6}, uint(3), "token: '", `"`)
	f.Add([]byte("abcdefgh"), uint(9), "-----BEGIN PRIVATE KEY-----", "map[")
	f.Fuzz(func(t *testing.T, seed []byte, form uint, before, after string) {
		const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._~+"
		var b strings.Builder
		for _, c := range seed {
			b.WriteByte(letters[int(c)%len(letters)])
		}
		secret := "Q7" + b.String() // so that it does not stand in the rest by chance
		if len(secret) < 8 || len(secret) > 100 || strings.Contains(before+after, secret) {
			return
		}
		text := fmt.Sprintf("%s\n"+planted[form%uint(len(planted))]+"\n%s", before, secret, after)
		got := exec.Redact(text, nil)
		require.NotContains(t, got, secret)
		for _, known := range []string{secret, secret + before} {
			got = exec.Redact(before+base64.StdEncoding.EncodeToString([]byte(after+secret))+" "+secret+after, []string{known, secret})
			require.NotContains(t, got, secret)
		}
	})
}
