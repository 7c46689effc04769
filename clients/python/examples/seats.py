import os

import samya

targets = os.environ.get("SAMYA_TARGETS", "http://127.0.0.1:8080").split(",")
with samya.Client(targets, token=os.environ.get("SAMYA_TOKEN")) as client:
    try:
        grant = client.acquire("acme/seats", 3)
        print(f"site {grant.site} granted {grant.tokens} seats")
        with client.acquire_lease("acme/seats", 2, ttl=30).keep() as kept:
            kept.check()  # before each step of work that needs the two seats
        kept.current.release()
        client.release("acme/seats", grant.tokens)
    except samya.OutOfTokensError as e:
        print(f"no seats: ask again in {e.retry_after} s")
