# Lists the environments as a matrix: each stack file whose secrets a cloud encrypts, and which cloud that is.
BEGIN {
  clouds["awskms"] = "aws"; clouds["azurekeyvault"] = "azure"; clouds["gcpkms"] = "gcp"
}

/^secretsprovider:/ {
  stack = FILENAME; sub(/^Pulumi\./, "", stack); sub(/\.yaml$/, "", stack)
  provider = $2; sub(/:.*/, "", provider); gsub(/["']/, "", provider)
  if (provider == "passphrase") next
  if (!(provider in clouds)) refuse("no cloud is known for secrets provider " provider, "use awskms, azurekeyvault or gcpkms")
  else if (stack !~ /^[A-Za-z0-9_.-]+$/) refuse("a stack is named by letters, digits, _, . and -", "rename the file")
  else { entries = entries separator "{\"stack\":\"" stack "\",\"cloud\":\"" clouds[provider] "\"}"; separator = "," }
}

END {
  if (refused) exit 1
  print "[" entries "]"
}

function refuse(cause, mend) {
  print "✗ " FILENAME ": " cause "\n→ " mend > "/dev/stderr"
  refused = 1
}
