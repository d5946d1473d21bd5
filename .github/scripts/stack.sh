# Sourced by the scripts of one stack, which the variable STACK names; they run in the project's folder.
# A stack is never part of a command's text: in a pull request, the name of a file is anybody's text.
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export STACK=${STACK:-dev}
review=.sandbox/reviews/$STACK
mkdir -p .sandbox/reviews
PATH=$PWD/.venv/bin:$PATH # where the project has an environment of its own
