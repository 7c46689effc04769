import asyncio
import os

import samya


async def main() -> None:
    targets = os.environ.get("SAMYA_TARGETS", "http://127.0.0.1:8080").split(",")
    async with samya.AsyncClient(targets, token=os.environ.get("SAMYA_TOKEN")) as client:
        grant = await client.acquire("acme/seats", 3)
        print(f"site {grant.site} granted {grant.tokens} seats")
        async for state in client.watch("acme/seats"):
            print(f"{state.acquired} of {state.limit} seats are out")
            break
        await client.release("acme/seats", grant.tokens)


asyncio.run(main())
