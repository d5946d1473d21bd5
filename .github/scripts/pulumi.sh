# Sourced by the scripts that run the Pulumi CLI on STACK. No variable here is called PULUMI: one of that name is the
# CLI that credfleet's commands take.
. "$(dirname "${BASH_SOURCE[0]}")/stack.sh"
command -v pulumi > /dev/null || {
  echo "✗ PATH: no Pulumi CLI" >&2
  echo "→ install it, https://www.pulumi.com/docs/install; make up builds its own" >&2
  exit 1
}
make -s env >&2

policies=(--policy-pack policies)
if [ -f "policies/config/$STACK.json" ]; then
  policies+=("--policy-pack-config=policies/config/$STACK.json")
fi

# Ends where the CLI ended for want of a login or a stack, below what it says itself; $1: its exit code.
end_without_a_stack() {
  case $1 in
    3)
      echo "→ export PULUMI_BACKEND_URL=…, where the state is" >&2
      exit "$1" ;;
    6)
      provider=$(sed -n "s/^secretsprovider: *[\"']*\([^\"' ]*\).*/\1/p" "Pulumi.$STACK.yaml")
      echo "→ pulumi stack init $STACK --secrets-provider '${provider:-passphrase}'" >&2
      exit "$1" ;;
  esac
}

on_stack() {
  pulumi --non-interactive --stack "$STACK" "$@"
}
