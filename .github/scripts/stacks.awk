# Lists the environments as a matrix, production last: each stack file whose secrets a cloud encrypts, which cloud that is
# (its cluster is there), and at which clouds an update signs in.
BEGIN {
  clouds["awskms"] = "aws"; clouds["azurekeyvault"] = "azure"; clouds["gcpkms"] = "gcp"
}

FNR == 1 { finish(); stack = FILENAME; sub(/^Pulumi\./, "", stack); sub(/\.yaml$/, "", stack); cloud = azure = gcp = "" }

/^secretsprovider:/ {
  provider = $2; sub(/:.*/, "", provider); gsub(/["']/, "", provider)
  if (provider == "passphrase") next
  if (!(provider in clouds)) refuse("no cloud is known for secrets provider " provider, "use awskms, azurekeyvault or gcpkms")
  else if (stack !~ /^[A-Za-z0-9_.-]+$/) refuse("a stack is named by letters, digits, _, . and -", "rename the file")
  else cloud = clouds[provider]
}

# What a stack declares at a cloud, whether or not it sets the provider of that cloud.
/^  [^ #]/ { section = $1 }
/^  ["']?azure-native:/ || (section ~ /asoCredentials/ && /^    (identities|resourceGroups):/) { azure = 1 }
/^  ["']?gcp:/ || /^  ["']?(credfleet:)?pullSecrets["']?:/ || /kind: *["']?GCPSM/ || /gcpSecret["']?:/ { gcp = 1 }

END {
  finish()
  if (refused) exit 1
  print "[" others (others != "" && production != "" ? "," : "") production "]"
}

function finish(all, entry) {
  if (cloud == "") return
  all = "\"" cloud "\"" (azure && cloud != "azure" ? ",\"azure\"" : "") (gcp && cloud != "gcp" ? ",\"gcp\"" : "")
  entry = "{\"stack\":\"" stack "\",\"cloud\":\"" cloud "\",\"clouds\":[" all "]}"
  if (stack ~ /^prod($|[_.-])/) production = production (production == "" ? "" : ",") entry
  else others = others (others == "" ? "" : ",") entry
}

function refuse(problem, fix) {
  print "✗ " FILENAME ": " problem "\n→ " fix > "/dev/stderr"
  refused = 1
}
