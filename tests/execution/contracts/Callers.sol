// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

interface IPermit2 {
    function transferFrom(address from, address to, uint160 amount, address token) external;
}

/// Calls others in turn: what every contract of this file does with what it is given.
abstract contract Calling {
    function _call(address to, uint256 value, bytes memory data) internal returns (bytes memory) {
        (bool ok, bytes memory result) = to.call{value: value}(data);
        require(ok, "inner");
        return result;
    }
}

/// Multicall3's functions, written again from its interface.
contract Multicall3 is Calling {
    struct Call {
        address target;
        bytes callData;
    }
    struct Call3 {
        address target;
        bool allowFailure;
        bytes callData;
    }
    struct Call3Value {
        address target;
        bool allowFailure;
        uint256 value;
        bytes callData;
    }
    struct Result {
        bool success;
        bytes returnData;
    }

    function aggregate(Call[] calldata calls) external payable returns (uint256, bytes[] memory results) {
        results = new bytes[](calls.length);
        for (uint256 i = 0; i < calls.length; i++) results[i] = _call(calls[i].target, 0, calls[i].callData);
        return (block.number, results);
    }

    function tryAggregate(bool strict, Call[] calldata calls) external payable returns (Result[] memory results) {
        results = new Result[](calls.length);
        for (uint256 i = 0; i < calls.length; i++) results[i] = _try(calls[i].target, !strict, 0, calls[i].callData);
    }

    function aggregate3(Call3[] calldata calls) external payable returns (Result[] memory results) {
        results = new Result[](calls.length);
        for (uint256 i = 0; i < calls.length; i++)
            results[i] = _try(calls[i].target, calls[i].allowFailure, 0, calls[i].callData);
    }

    function aggregate3Value(Call3Value[] calldata calls) external payable returns (Result[] memory results) {
        results = new Result[](calls.length);
        for (uint256 i = 0; i < calls.length; i++)
            results[i] = _try(calls[i].target, calls[i].allowFailure, calls[i].value, calls[i].callData);
    }

    function _try(address to, bool mayFail, uint256 value, bytes calldata data) private returns (Result memory result) {
        (result.success, result.returnData) = to.call{value: value}(data);
        require(result.success || mayFail, "inner");
    }
}

/// A router: it takes what its caller allowed it, and pays out to whomever its caller names.
contract Router is Calling {
    IPermit2 private immutable PERMIT2;

    constructor(IPermit2 permit2) {
        PERMIT2 = permit2;
    }

    receive() external payable {}

    function swapExactTokensForTokens(
        uint256 amountIn,
        uint256,
        address[] calldata path,
        address to,
        uint256
    ) external returns (uint256[] memory amounts) {
        IERC20(path[0]).transferFrom(msg.sender, address(this), amountIn);
        IERC20(path[path.length - 1]).transfer(to, amountIn);
        amounts = new uint256[](path.length);
    }

    function swapExactETHForTokens(
        uint256,
        address[] calldata path,
        address to,
        uint256
    ) external payable returns (uint256[] memory amounts) {
        IERC20(path[path.length - 1]).transfer(to, msg.value);
        amounts = new uint256[](path.length);
    }

    function pay(address to) external payable {
        _call(to, msg.value, "");
    }

    function pull(address token, address to, uint256 amount) external payable {
        IERC20(token).transferFrom(msg.sender, to, amount);
    }

    function pullByPermit2(address token, address to, uint160 amount) external payable {
        PERMIT2.transferFrom(msg.sender, to, amount, token);
    }

    function multicall(bytes[] calldata data) external payable returns (bytes[] memory) {
        return _each(data);
    }

    function multicall(uint256, bytes[] calldata data) external payable returns (bytes[] memory) {
        return _each(data);
    }

    function _each(bytes[] calldata data) private returns (bytes[] memory results) {
        results = new bytes[](data.length);
        for (uint256 i = 0; i < data.length; i++) {
            (bool ok, bytes memory result) = address(this).delegatecall(data[i]);
            require(ok, "inner");
            results[i] = result;
        }
    }
}

/// A wallet of an owner's, as many account contracts are.
contract Wallet is Calling {
    struct Execution {
        address target;
        uint256 value;
        bytes data;
    }

    address private immutable OWNER;

    constructor(address owner) {
        OWNER = owner;
    }

    receive() external payable {}

    modifier onlyOwner() {
        require(msg.sender == OWNER, "owner");
        _;
    }

    function execute(address to, uint256 value, bytes calldata data) external payable onlyOwner {
        _call(to, value, data);
    }

    function executeBatch(Execution[] calldata calls) external payable onlyOwner {
        for (uint256 i = 0; i < calls.length; i++) _call(calls[i].target, calls[i].value, calls[i].data);
    }

    function executeBatch(address[] calldata to, uint256[] calldata value, bytes[] calldata data) external onlyOwner {
        for (uint256 i = 0; i < to.length; i++) _call(to[i], value[i], data[i]);
    }
}
