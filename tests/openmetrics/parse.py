"""Reads OpenMetrics from standard input, as strictly as the parser of prometheus-client does, and writes it as JSON."""

import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

families = [
    {
        "name": family.name,
        "kind": family.type,
        "unit": family.unit,
        "says": family.documentation,
        "samples": [
            {
                "name": sample.name,
                "labels": sample.labels,
                "value": sample.value,
                "exemplar": sample.exemplar and sample.exemplar.labels,
            }
            for sample in family.samples
        ],
    }
    for family in text_string_to_metric_families(sys.stdin.read())
]
json.dump(families, sys.stdout)
