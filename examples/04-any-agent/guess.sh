#!/bin/sh
# Hosts a guessing game for the model: it names a digit, and is told whether the number is higher or lower.
# The same agent as guess.py, with curl and sed.
set -eu

secret=$(printf '%s' "$HONE_TASK" | sed 's/.*"ground_truth":"\([0-9]\)".*/\1/')
messages='{"role":"user","content":"guess"}'

for _ in 1 2 3 4; do
  answer=$(curl --silent --show-error --fail-with-body "$OPENAI_BASE_URL/chat/completions" \
    --header "Authorization: Bearer $OPENAI_API_KEY" --header "Content-Type: application/json" \
    --data "{\"model\":\"policy\",\"max_tokens\":2,\"messages\":[$messages]}")
  # The model's tokens contain no character that must be escaped in JSON.
  guess=$(printf '%s' "$answer" | sed 's/.*"content":"\([^"]*\)".*/\1/')
  case $guess in
    "$secret") exit 0 ;;
    [0-9]) if [ "$secret" -gt "$guess" ]; then hint=higher; else hint=lower; fi ;;
    *) hint=digit ;;
  esac
  messages="$messages,{\"role\":\"assistant\",\"content\":\"$guess\"},{\"role\":\"user\",\"content\":\"$hint\"}"
done
