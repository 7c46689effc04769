"use strict";

function computeThingDiskToHclTerraform(struct) {
    const attrs = {
        size: {
            value: cdktf.numberToHclTerraform(struct.size),
            isBlock: false,
            type: "simple",
            storageClassType: "number",
        },
        key: {
            value: computeThingDiskKeyToHclTerraform(struct.key),
            isBlock: true,
            type: "list",
            storageClassType: "ComputeThingDiskKeyList",
        },
    };
}

class ComputeThingDiskOutputReference extends cdktf.ComplexObject {
    // serial - computed: true, optional: false, required: false
    get serial() {
        return this.getStringAttribute('serial');
    }
}

function computeThingDiskKeyToHclTerraform(struct) {
    const attrs = {
        raw: {
            value: cdktf.booleanToHclTerraform(struct.raw),
            isBlock: false,
            type: "simple",
            storageClassType: "boolean",
        },
    };
}

function computeThingTimeoutsToHclTerraform(struct) {
    const attrs = {
        create: {
            value: cdktf.stringToHclTerraform(struct.create),
            isBlock: false,
            type: "simple",
            storageClassType: "string",
        },
    };
}

class ComputeThingStatusOutputReference extends cdktf.ComplexObject {
    // ready - computed: true, optional: false, required: false
    get ready() {
        return this.getBooleanAttribute('ready');
    }
}

class ComputeThing extends cdktf.TerraformResource {
    constructor(scope, id, config) {
        // status - computed: true, optional: false, required: false
        this._status = new ComputeThingStatusList(this, "status", false);
    }
    // labels - computed: true, optional: false, required: false
    _labels = new cdktf.StringMap(this, "labels");
    // zones - computed: true, optional: false, required: false
    get zones() {
        return cdktf.Fn.tolist(this.getListAttribute('zones'));
    }
    synthesizeHclAttributes() {
        const attrs = {
            name: {
                value: cdktf.stringToHclTerraform(this._name),
                isBlock: false,
                type: "simple",
                storageClassType: "string",
            },
            tags: {
                value: cdktf.listMapperHcl(cdktf.stringToHclTerraform, false)(this._tags),
                isBlock: false,
                type: "set",
                storageClassType: "stringList",
            },
            disk: {
                value: cdktf.listMapperHcl(computeThingDiskToHclTerraform, true)(this._disk.internalValue),
                isBlock: true,
                type: "list",
                storageClassType: "ComputeThingDiskList",
            },
            timeouts: {
                value: computeThingTimeoutsToHclTerraform(this._timeouts.internalValue),
                isBlock: true,
                type: "struct",
                storageClassType: "ComputeThingTimeouts",
            },
        };
    }
}
